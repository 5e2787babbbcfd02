import Cryptography
import JSONText
import Telemetry

extension [OriginFacts] {
    /// One line for each address of a server, as `portcullis origins list` prints it.
    var lines: String {
        var text = ""
        for origin in self {
            for server in origin.servers { text += server.line(of: origin.name) + "\n" }
        }
        return text
    }

    /// As a member of a document.
    func write(into out: inout JSONWriter) {
        out.array("origins") { out in
            for origin in self {
                out.object { out in
                    out.member("name", origin.name)
                    out.array("servers") { out in
                        for server in origin.servers { out.object { server.write(into: &$0) } }
                    }
                }
            }
        }
    }

    /// As metrics.
    func write(into out: inout Exposition) {
        typealias Value = (OriginFacts.Server) -> UInt64
        let metrics: [(name: String, type: String, help: String, value: Value)] = [
            (
                "origin_server_up", "gauge", "Whether nothing speaks against the server.",
                { $0.state == "up" ? 1 : 0 }
            ),
            (
                "origin_server_requests_active", "gauge", "Requests that the server has.",
                { UInt64($0.active) }
            ),
            (
                "origin_server_requests_total", "counter", "Requests that the server has had.",
                \.requests
            ),
            (
                "origin_server_failures_total", "counter",
                "Requests and connects that failed at the server.", \.failures
            ),
            (
                "origin_server_ejections_total", "counter",
                "Times the server was passed over because requests failed in a row.", \.ejections
            ),
        ]
        for metric in metrics {
            out.metric(metric.name, type: metric.type, help: metric.help)
            for origin in self {
                for server in origin.servers {
                    let labels = [
                        ("origin", origin.name), ("server", server.name),
                        ("address", server.address),
                    ]
                    out.sample(metric.name, labels, metric.value(server))
                }
            }
        }
    }
}

extension OriginFacts.Server {
    fileprivate func line(of origin: String) -> String {
        func text(_ note: OriginFacts.Note?) -> String {
            guard let note else { return "never" }
            return "\(note.word) at \(UnixTime(seconds: note.at / 1000).iso8601)"
        }
        let place = name == address ? name : "\(name) (\(address))"
        return [
            origin, place, state + (isBackup ? ", backup" : ""), "weight \(weight)",
            "\(active) active", "\(requests) served", "\(failures) failed",
            "\(ejections) ejections", "last failure: \(text(lastFailure))",
            "last check: \(text(lastCheck))",
        ].joined(separator: "\t")
    }

    fileprivate func write(into out: inout JSONWriter) {
        out.member("server", name)
        out.member("address", address)
        out.member("state", state)
        out.member("weight", weight)
        out.member("backup", isBackup)
        out.member("requests_active", active)
        out.member("requests", requests)
        out.member("failures", failures)
        out.member("ejections", ejections)
        Self.write(lastFailure, "last_failure", into: &out)
        Self.write(lastCheck, "last_check", into: &out)
    }

    private static func write(
        _ note: OriginFacts.Note?,
        _ name: String,
        into out: inout JSONWriter
    ) {
        out.member(name, note?.word)
        out.member(name + "_at", note.map { UnixTime(seconds: $0.at / 1000).iso8601 })
    }
}
