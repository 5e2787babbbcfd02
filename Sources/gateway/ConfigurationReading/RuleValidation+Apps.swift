import RequestBinding
import Rules

extension RuleValidation {
    /// The apps whose keys are admitted.
    func apps(of draft: RuleDraft) -> AppScope {
        guard let named = draft.apps else {
            if lacksProductionApp, !draft.reader.has("apps") {
                draft.reader.require(
                    "apps",
                    use: "apps: [\(appIDs.joined(separator: ", "))]: no app here has the "
                        + "environment production, and others must be named"
                )
            }
            return .production
        }
        for app in named where !knownApps.contains(app.value) {
            log.unknown("app", app, among: appIDs)
        }
        return .named(named.map(\.value))
    }

    /// The hosts at which keys of one app, or of all production apps, are admitted without a signed
    /// host.
    private struct Admissions {
        var first: (host: HostPattern, rule: Int)?
        /// A rule that adds a second host.
        var second: Int?

        mutating func add(_ host: HostPattern, rule: Int) {
            if let first {
                if second == nil, first.host != host { second = rule }
            } else {
                first = (host, rule)
                // Such a pattern matches many hosts.
                if case .under = host { second = rule }
            }
        }
    }

    /// Warns of apps whose keys are admitted at more than one host by rules that don't sign the
    /// host: an assertion made for one host is then good at another.
    ///
    /// - `rules`: by number, the default last, and where each has its match.
    func findSharedHosts(_ rules: [Rule], _ places: [Problem.Place], _ apps: [AppPolicy]) {
        var ofProduction = Admissions()
        var byApp: [String: Admissions] = [:]
        for rule in rules where rule.mode.verifies && !rule.signing.coversHost {
            guard rule.match.host != .any else { continue }
            switch rule.apps {
            case .production: ofProduction.add(rule.match.host, rule: rule.index)
            case .named(let ids):
                for id in ids {
                    byApp[id, default: Admissions()].add(rule.match.host, rule: rule.index)
                }
            }
        }
        warn(ofProduction, "production apps", rules, places)
        for app in apps {
            guard var found = byApp[app.id] else { continue }
            if app.isProduction {
                // Rules that name no apps admit its keys as well.
                if ofProduction.second != nil { continue }
                if let other = ofProduction.first { found.add(other.host, rule: other.rule) }
            }
            warn(found, app.id, rules, places)
        }
    }

    private func warn(
        _ found: Admissions,
        _ whose: String,
        _ rules: [Rule],
        _ places: [Problem.Place]
    ) {
        guard let first = found.first, let second = found.second else { return }
        let host = rules[second].match.host.text
        let passes =
            second == first.rule
            ? "for one of these hosts passes at the others"
            : "for \(first.host.text) (\(places[first.rule].text)) passes too"
        log.warning(
            places[second],
            "\(rules[second].id).match.host",
            found: "\(host), where an assertion of \(whose) \(passes)",
            use: "headers: [host], so that the host is signed, or different apps"
        )
    }
}

extension SigningForm {
    /// Whether the client's Host field is signed.
    fileprivate var coversHost: Bool {
        guard case .lines(_, let headers) = self else { return false }
        return headers.contains("host")
    }
}
