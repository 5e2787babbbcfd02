package import Rules

/// A rule as operators know it.
package struct RuleFacts: Sendable {
    package var id: String
    /// off, observe, enforce or deny.
    package var mode: String
    /// The share for which it refuses, in the words of the configuration: `25%`.
    package var rollout: String
    /// The name of the origin it forwards to.
    package var origin: String
    /// What mode and rollout come from.
    package var source = RolloutStanding.Source.file
    /// Who has ordered them, when and why; `nil` for the file.
    package var order: String?
    /// What its guard has made of the file's ramp; `nil` where it follows its dates.
    package var ramp: String?
    /// Mode and rollout of the file: `enforce, 25% by key`.
    package var file: String
    /// How its guard stands; `nil` where it has none.
    package var fallback: GuardFacts?

    /// Mode and share in words: `enforce, 25% by key`.
    var standing: String { mode == "enforce" ? "enforce, \(rollout)" : mode }

    package init(id: String, mode: String, rollout: String, origin: String) {
        self.id = id
        self.mode = mode
        self.rollout = rollout
        self.origin = origin
        file = mode
    }

    /// - filed: the rule as its file has it.
    package init(_ standing: RolloutStanding, filed: Rule, origin: String) {
        let rule = standing.rule
        self.init(id: rule.id, mode: rule.mode.rawValue, rollout: rule.rollout.text, origin: origin)
        source = standing.source
        order = standing.note?.text
        ramp = standing.rampText
        file = filed.modeText
    }
}

extension [RuleFacts] {
    /// One line for each rule: id, how it stands, what says so, what the file says, and what a
    /// guard has made of the file's ramp.
    var lines: String {
        map { rule in
            let order = rule.order.map { " (\($0))" } ?? ""
            let source = rule.source.rawValue + order
            let ramp = rule.ramp.map { "\t\($0)" } ?? ""
            return "\(rule.id)\t\(rule.standing)\t\(source)\tfile: \(rule.file)\(ramp)\n"
        }.joined()
    }
}
