import AppleServices
import KeyStore
import Rules

// Rules that need Apple's data about devices.
extension ConfigurationDraft {
    /// A metric needs renewed receipts, or an import from a gateway that renews them.
    func validateRisk(_ rules: some Sequence<(RuleDraft, Rule)>, _ apple: AppleSettings) {
        let why =
            apple.credentials.isEmpty
            ? "it without apple.keys" : apple.receipts.renews ? nil : "it without renewed receipts"
        guard let why else { return }
        for (draft, rule) in rules {
            guard rule.mode.verifies, let risk = draft.risk else { continue }
            reader.log.warning(
                risk.max.place,
                risk.max.keyPath,
                found: "\(why), where only keys import can bring a metric",
                use: "apple.keys and apple.receipts.renew: true, if metrics are to be known"
            )
        }
    }

    /// Each app that such a rule admits needs a key of its team, and a host that knows its tokens.
    func validateDevices(
        _ rules: some Sequence<(RuleDraft, Rule)>,
        _ apps: [AppPolicy],
        _ apple: AppleSettings
    ) {
        // Unreadable values are reported where they stand.
        guard !reader.log.hasErrors else { return }
        for (draft, rule) in rules {
            guard rule.asksDevice, let device = draft.device else { continue }
            func report(_ found: String, use: String) {
                reader.log.error(device.place, device.keyPath, found: found, use: use)
            }
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
                if teams.count > 1, !teams.contains(String(team)) {
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
