import HTTPWire
import Proxy
import RequestBinding
package import Rules
import Services

/// All settings of the gateway: complete and consistent. Those of ``settings`` are its own members.
///
/// Only ``ConfigurationLoader`` makes it, from files without an error.
@dynamicMemberLookup
package struct GatewayConfiguration: Sendable {
    package let settings: GatewaySettings
    /// `rules` and `default`.
    package let fileRules: RuleSet
    /// SHA-256 of the rules as they are written, without comments and layout.
    package internal(set) var rulesDigest: [UInt8] = []
    /// The rules with the orders of operators; `nil` without orders.
    var orderedRules: RuleSet? = nil
    /// The rules as they are served.
    package var rules: RuleSet { orderedRules ?? fileRules }
    /// The place of each rule, by its number; the default last.
    package let rulePlaces: [Problem.Place]
    /// The places of the settings, by key path.
    let places: [String: Problem.Place]

    package subscript<Value>(dynamicMember path: KeyPath<GatewaySettings, Value>) -> Value {
        settings[keyPath: path]
    }

    /// The place of a setting, such as `listen[0].tls.key` or `origins.shop.servers[1]`; for one
    /// that is not in the file, that of the mapping it would be in.
    package func place(of keyPath: String) -> Problem.Place {
        places.place(of: keyPath)
    }

    /// What differs in another configuration, except for rules: in the order of the keys.
    package func changes(to next: GatewayConfiguration) -> [SettingChange] {
        GatewaySettings.keys.changes(from: settings, to: next.settings, at: "")
    }

    /// The plan for apps, of the rules as they are served; `nil` where the plan is not served.
    package var servedPlan: [UInt8]? {
        settings.servesPlan ? ClientPlan(rules, endpoints: settings.endpointsPath).json : nil
    }

    /// The rule of requests to open a session; `nil` where no rule accepts sessions.
    package var sessionOpening: Rule? {
        // An order may switch such a rule off and on again, and sessions outlive that.
        guard fileRules.rules.contains(where: { $0.accept.takesSessions }) else { return nil }
        return .openingSessions(apps: settings.apps.map(\.id))
    }

    package func ordered(by orders: RolloutOrders) -> GatewayConfiguration {
        var ordered = self
        ordered.orderedRules = orders.rules(fileRules)
        return ordered
    }

    /// The origin of a rule; `nil` for a rule that denies.
    package func origin(of rule: Rule) -> UpstreamSettings? {
        rule.origin.map { settings.origins[$0.rawValue] }
    }

    /// The fields that rules sign, or in which they look for a token or for a proof under another
    /// name; in lower case, sorted.
    package var fieldsOfRules: [String] {
        var names: Set<String> = []
        for rule in rules.rules where rule.mode.verifies {
            if case .lines(_, let headers) = rule.signing { names.formUnion(headers) }
            var others = rule.fields == .standard ? [] : rule.fields.all
            for place in rule.tokens.map(\.place) {
                switch place {
                case .field(let name): others.append(name)
                case .cookie: others.append(Array("cookie".utf8))
                }
            }
            names.formUnion(others.map { String(decoding: $0, as: UTF8.self) })
        }
        return names.sorted()
    }

    /// The listeners where other proxies ask for decisions, and send no content.
    var blindListeners: [String] {
        settings.listeners.filter { $0.decides?.content == DecisionQuestion.Content.none }
            .map(\.address.text)
    }
}

extension RuleSet {
    /// Whether content may be held that is too large for memory.
    package var spills: Bool {
        rules.contains { rule in
            if case .held(let limit, let memory) = rule.body { memory < limit } else { false }
        }
    }
}

extension GatewayConfiguration {
    /// Where held content goes that is too large for memory, and what it counts as; `nil` where
    /// there is none.
    package var spillText: String? {
        guard rules.spills else { return nil }
        let bound =
            settings.limits.filesAreMemory
            ? "which is in memory: it counts as limits.held_memory, "
                + ByteCount(settings.limits.heldMemoryMax).text
            : "at most limits.held_disk, \(ByteCount(settings.limits.heldDiskMax).text)"
        return "content beyond a rule's memory goes to \(settings.spillFolder), \(bound)"
    }
}

extension GatewayConfiguration {
    /// Says why no command reaches the gateway; `nil` where one does.
    package var commandProblem: Problem? {
        guard !settings.admin.contains(where: { $0.serves.contains(.call) }) else { return nil }
        let found =
            settings.admin.isEmpty
            ? "no admin listener, so no command reaches the gateway"
            : "no admin listener that serves calls, so `portcullis rollout`, `why`, `origins` and "
                + "`upgrade` can't reach the gateway"
        return Problem(
            .warning,
            at: place(of: "admin"),
            "admin",
            found: found,
            use: "one more listener for them: - address: unix:/run/portcullis/admin.sock"
        )
    }
}
