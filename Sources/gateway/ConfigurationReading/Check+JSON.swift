import Encodings
import HTTPWire
import Rules

// The reports of commands as JSON documents, each with a schema in `deploy/schemas`. Names of
// members are API: add, do not rename.

extension Problem {
    fileprivate func write(into out: inout JSONWriter) {
        out.member("severity", severity.rawValue)
        out.member("file", place.file)
        out.member("line", place.line)
        out.member("key", keyPath)
        out.member("found", found)
        out.member("use", use)
    }
}

extension JSONWriter {
    mutating func problems(_ name: String, _ problems: [Problem]) {
        objects(name, of: problems) { $1.write(into: &$0) }
    }

    mutating func assumptions(_ assumptions: [Assumption]) {
        objects("assumed", of: assumptions) { out, assumption in
            out.member("kind", assumption.kind.rawValue)
            out.member("name", assumption.name)
            out.member("key", assumption.keyPath)
            out.member("file", assumption.place.file)
            out.member("line", assumption.place.line)
        }
    }
}

extension LoadedConfiguration {
    /// A refused configuration as a JSON document, of a command that can't answer by it.
    package var refusedJSON: String {
        var out = JSONWriter(.indented)
        out.object { out in
            out.member("ok", false)
            out.problems("problems", problems)
            out.assumptions(assumptions)
        }
        return out.text + "\n"
    }
}

extension Check {
    /// The report as a JSON document: what the configuration means is in it where it is accepted.
    package var json: String {
        var out = JSONWriter(.indented)
        out.object { out in
            out.member("file", file)
            out.member("ok", exitStatus == 0)
            out.problems("problems", loaded.configuration == nil ? loaded.problems : warnings)
            out.assumptions(loaded.assumptions)
            guard let configuration = loaded.configuration else { return }
            write(configuration, into: &out)
            guard let coverage else { return }
            out.object("coverage") { out in
                out.problems("spellings", coverage.spellings)
                out.objects("rules", of: coverage.entries) { out, entry in
                    out.member("rule", entry.rule.id)
                    out.member("complete", !entry.isCut)
                    out.problems("ways", entry.ways)
                }
            }
        }
        return out.text + "\n"
    }

    private func write(_ configuration: GatewayConfiguration, into out: inout JSONWriter) {
        out.objects("listeners", of: configuration.listeners) { out, listener in
            out.member("address", listener.address.text)
            out.member("tls_minimum", listener.tls?.terms.minimumVersion.rawValue)
            out.member("decides", listener.decides?.text)
        }
        out.objects("admin", of: configuration.admin) { out, admin in
            out.member("address", admin.address.text)
            out.member("serves", admin.servesText)
        }
        out.objects("origins", of: configuration.origins) { out, origin in
            out.member("name", origin.name)
            out.texts("servers", origin.servers.map(\.text))
        }
        out.objects("apps", of: configuration.apps) { out, app in
            out.member("id", app.id)
            out.texts("environments", app.environmentNames)
        }
        let rules = zip(configuration.rules.rules, configuration.rulePlaces)
        out.objects("rules", of: rules) { out, item in
            let (rule, place) = item
            let isDefault = rule === configuration.rules.fallback
            out.member("id", rule.id)
            out.member("match", isDefault ? nil : rule.match.text)
            out.member("origin", configuration.origin(of: rule)?.name)
            out.member("mode", rule.mode.rawValue)
            out.member("rollout", rule.rollout.text)
            out.member("order", loaded.orders.standing(of: rule).orderText)
            out.texts("demands", rule.demandLines)
            out.member("file", place.file)
            out.member("line", place.line)
        }
    }
}

extension ConfigurationDifference {
    /// The report as a JSON document.
    package func json(assuming assumptions: [Assumption]) -> String {
        var out = JSONWriter(.indented)
        out.object { out in
            out.member("ok", true)
            out.problems("problems", [])
            out.assumptions(assumptions)
            out.objects("rules", of: endpoints) { out, endpoint in
                out.member("id", endpoint.id)
                out.member("order", endpoint.order)
                out.objects("changes", of: endpoint.changes) { out, change in
                    out.member("what", change.what.rawValue)
                    out.member("from", change.from)
                    out.member("to", change.to)
                    out.member("text", change.text)
                }
            }
            out.objects("settings", of: settings) { out, change in
                out.member("key", change.keyPath)
                out.member("change", change.word)
                out.member("from", change.from)
                out.member("to", change.to)
                out.member("needs", "\(change.needs)")
            }
        }
        return out.text + "\n"
    }
}

extension RouteTest {
    /// The report as a JSON document.
    package func json(assuming assumptions: [Assumption]) -> String {
        var out = JSONWriter(.indented)
        out.object { out in
            out.member("ok", exitStatus == 0)
            out.problems("problems", problems)
            out.assumptions(assumptions)
            out.member("passed", results.count { $0.faults.isEmpty })
            out.member("failed", results.count { !$0.faults.isEmpty })
            out.objects("results", of: results) { out, result in
                out.member("request", result.title)
                out.member("file", result.place.file)
                out.member("line", result.place.line)
                out.member("passed", result.faults.isEmpty)
                out.texts("faults", result.faults)
            }
        }
        return out.text + "\n"
    }
}
