import DeviceKey
import KeyStore
import Parties
import RequestBinding
import Rules

extension RuleValidation {
    /// The apps whose keys are admitted.
    func apps(of rule: StatedRule) -> AppScope {
        guard let named = rule.value.apps else {
            if lacksProductionApp, !rule.reader.has("apps") {
                rule.reader.require(
                    "apps",
                    use: "apps: [\(appIDs.joined(separator: ", "))]: no app here has the "
                        + "environment production, and others must be named"
                )
            }
            return .production
        }
        for (place, app) in named.enumerated() where !knownApps.contains(app) {
            log.unknown("app", rule.located("apps", at: place, app), among: appIDs)
        }
        return .named(named)
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

        static let use = "headers: [host], so that the host is signed, or different apps"

        /// What is found at the rule that adds the second host.
        func problem(
            of whose: String,
            _ rules: [Rule],
            at places: [Problem.Place]
        ) -> (rule: Int, found: String)? {
            guard let first, let second else { return nil }
            let host = rules[second].match.host.text
            let passes =
                second == first.rule
                ? "for one of these hosts passes at the others"
                : "for \(first.host.text) (\(places[first.rule].text)) passes too"
            return (second, "\(host), where an assertion of \(whose) \(passes)")
        }
    }

    /// Warns of apps whose keys are admitted at more than one host by rules that don't sign the
    /// host: an assertion made for one host is then good at another.
    ///
    /// - `rules`: by number, the default last, and where each has its match.
    func findSharedHosts(_ rules: [Rule], at places: [Problem.Place], of apps: [AppPolicy]) {
        var ofProduction = Admissions()
        var byApp: [String: Admissions] = [:]
        for rule in rules where rule.readsKeys && !rule.signing.coversHost {
            guard rule.match.host != .any else { continue }
            switch rule.apps {
            case .production: ofProduction.add(rule.match.host, rule: rule.index)
            case .named(let ids):
                for id in ids {
                    byApp[id, default: Admissions()].add(rule.match.host, rule: rule.index)
                }
            }
        }
        func warn(_ found: Admissions, of whose: String) {
            guard let problem = found.problem(of: whose, rules, at: places) else { return }
            let path = "\(rules[problem.rule].id).match.host"
            log.warning(places[problem.rule], path, found: problem.found, use: Admissions.use)
        }
        warn(ofProduction, of: "production apps")
        for app in apps {
            guard var found = byApp[app.id] else { continue }
            if app.isProduction {
                // Rules that name no apps admit its keys as well.
                if ofProduction.second != nil { continue }
                if let other = ofProduction.first { found.add(other.host, rule: other.rule) }
            }
            warn(found, of: app.id)
        }
    }
}

extension SigningForm {
    /// Whether the client's Host field is signed.
    fileprivate var coversHost: Bool {
        guard case .lines(_, let headers) = self else { return false }
        return headers.contains("host")
    }
}

/// Finds rules that need data about devices and can't get it.
struct DeviceRuleValidation {
    let apps: [AppPolicy]
    let apple: AppleSettings
    let log: ProblemLog

    /// Apple's metric needs renewed receipts, or an import. A phone's comes with its key.
    func validateRisk(_ rules: some Sequence<(StatedRule, Rule)>) {
        let why =
            apple.credentials.isEmpty
            ? "it without apple.keys" : apple.receipts.renews ? nil : "it without renewed receipts"
        guard let why else { return }
        for (stated, rule) in rules {
            let ofApple = apps.contains { $0.attestedBy == .apple && rule.apps.admits($0) }
            guard rule.mode.verifies, ofApple, rule.risk != nil else { continue }
            log.warning(
                log.located(stated.reader.path("risk.max"), ""),
                found: "\(why), where only keys import can bring a metric",
                use: "apple.keys and apple.receipts.renew: true, if metrics are to be known"
            )
        }
    }

    /// A session's requests are bound to no token, and only phones with Android have one.
    func validateIntegrity(_ rules: some Sequence<(StatedRule, Rule)>) {
        for (stated, rule) in rules {
            guard rule.mode.verifies, rule.integrity != nil else { continue }
            let integrity = log.located(stated.reader.path("integrity"), "")
            func report(_ found: String, use: String) {
                log.error(integrity, found: found, use: use)
            }
            if rule.accept.takesSessions {
                report(
                    "it beside session, whose requests are bound to no such token",
                    use: "accept: [assertion], or no integrity"
                )
            }
            if !apps.contains(where: { $0.attestedBy == .android && rule.apps.admits($0) }) {
                report(
                    "it where no Android app is admitted, so that it has no effect",
                    use: "an Android app in apps, or no integrity"
                )
            }
        }
    }

    /// Each app that such a rule admits needs a key of its team, and a host that knows its tokens.
    func validateDevices(_ rules: some Sequence<(StatedRule, Rule)>) {
        // Unreadable values are reported where they stand.
        guard !log.hasErrors else { return }
        for (stated, rule) in rules {
            guard rule.asksDevice else { continue }
            let device = log.located(stated.reader.path("device"), "")
            func report(_ found: String, use: String) { log.error(device, found: found, use: use) }
            let teams = apple.credentials.map(\.teamID)
            guard !teams.isEmpty else {
                report(
                    "it without apple.keys",
                    use:
                        "apple: { keys: [{ team: …, key_id: …, file: AuthKey_….p8 }] } beside rules"
                )
                continue
            }
            for app in apps where rule.apps.admits(app) {
                let team = app.id.prefix { $0 != "." }
                if app.attestedBy == .android {
                    report(
                        "it for \(app.id), an Android app, of whose phones Apple knows no bits",
                        use: "a rule of its own for the Android app"
                    )
                } else if teams.count > 1, !teams.contains(String(team)) {
                    report(
                        "it for \(app.id), whose team has no key",
                        use: "apple.keys with team: \(team), or apps that leave it out"
                    )
                }
                if app.isTest, apple.hosts[AppleHost(.deviceCheck, .test)] == nil {
                    report(
                        "it for test keys of \(app.id), which Apple does not know",
                        use: "apple.hosts.device_check_test, or apps that leave it out"
                    )
                }
            }
        }
    }
}
