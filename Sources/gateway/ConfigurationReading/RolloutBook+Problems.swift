package import Rules

extension RolloutBook {
    /// Orders that have no effect with a configuration.
    package func problems(_ configuration: GatewayConfiguration) -> [Problem] {
        let rules = configuration.fileRules.rules
        let places = Dictionary(
            zip(rules.map(\.id), zip(rules, configuration.rulePlaces)),
            uniquingKeysWith: { first, _ in first }
        )
        return entries.sorted { $0.key < $1.key }.compactMap { id, entry in
            let what = "the order \(entry.order.text) for it (\(entry.note.text))"
            guard let (rule, place) = places[id] else {
                return Problem(
                    .warning,
                    configuration.place(of: ""),
                    "rules",
                    found: "no rule \(id), but \(what)",
                    use: "`portcullis rollout --config FILE \(id) file` to forget the order"
                )
            }
            guard !rule.mode.verifies else { return nil }
            return Problem(
                .warning,
                place,
                "\(id).mode",
                found: "\(rule.mode.rawValue), and \(what), which has no effect",
                use: "observe or enforce, or `portcullis rollout --config FILE \(id) file`"
            )
        }
    }
}
