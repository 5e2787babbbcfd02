import DeviceKey
import KeyStore
import OutboundCalls
import Rules

/// Finds rules that need data about devices and can't get it.
struct DeviceRuleValidation {
    let apps: [AppPolicy]
    let apple: AppleSettings
    let log: ProblemLog

    /// Apple's metric needs renewed receipts, or an import. A phone's comes with its key.
    func validateRisk(_ rules: some Sequence<(RuleDraft, Rule)>) {
        let why =
            apple.credentials.isEmpty
            ? "it without apple.keys" : apple.receipts.renews ? nil : "it without renewed receipts"
        guard let why else { return }
        for (draft, rule) in rules {
            let ofApple = apps.contains { $0.attestedBy == .apple && rule.apps.admits($0) }
            guard rule.mode.verifies, ofApple, let risk = draft.risk else { continue }
            log.warning(
                risk.max,
                found: "\(why), where only keys import can bring a metric",
                use: "apple.keys and apple.receipts.renew: true, if metrics are to be known"
            )
        }
    }

    /// A session's requests are bound to no token, and only phones with Android have one.
    func validateIntegrity(_ rules: some Sequence<(RuleDraft, Rule)>) {
        for (draft, rule) in rules {
            guard rule.mode.verifies, rule.integrity != nil, let integrity = draft.integrity else {
                continue
            }
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
    func validateDevices(_ rules: some Sequence<(RuleDraft, Rule)>) {
        // Unreadable values are reported where they stand.
        guard !log.hasErrors else { return }
        for (draft, rule) in rules {
            guard rule.asksDevice, let device = draft.device else { continue }
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
