package import Rules

/// A rule as operators see it.
package struct RuleFacts: Sendable {
    package var id: String
    /// off, observe, enforce or deny.
    package var mode: String
    /// The share for which it refuses, in the words of the configuration: `25%`.
    package var rollout: String
    /// The name of the origin it forwards to.
    package var origin: String
    /// The origin of mode and rollout.
    package var source = RolloutStanding.Source.file
    /// The order's author, time and reason; `nil` for the file.
    package var order: String?
    /// The effect of its guard on the file's ramp; `nil` where the ramp follows its dates.
    package var ramp: String?
    /// Mode and rollout of the file: `enforce, 25% by key`.
    package var file: String
    /// The state of its guard; `nil` where it has none.
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

    /// - filed: the rule of its file.
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
    /// One line for each rule: id, state, its origin, what the file says, and the guard's effect on
    /// the file's ramp.
    package var lines: String {
        map { rule in
            let order = rule.order.map { " (\($0))" } ?? ""
            let source = rule.source.rawValue + order
            let ramp = rule.ramp.map { "\t\($0)" } ?? ""
            return "\(rule.id)\t\(rule.standing)\t\(source)\tfile: \(rule.file)\(ramp)\n"
        }.joined()
    }
}
