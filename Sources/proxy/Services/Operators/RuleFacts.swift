package import Encodings
package import Rules
import Telemetry

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
    /// An order for it that changes nothing now, with author, time and reason; `nil` without one.
    package var kept: String?
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
        kept = standing.keptText
        file = filed.modeText
    }
}

extension RuleFacts {
    /// Its members in `/status` and in `rollout --json`: how the rule stands, and why.
    package func write(into out: inout JSONWriter) {
        out.member("id", id)
        out.member("mode", mode)
        out.member("rollout", rollout)
        out.member("origin", origin)
        out.member("source", source.rawValue)
        out.member("order", order)
        out.member("file", file)
        out.member("ramp", ramp)
        out.member("kept_order", kept)
        fallback?.write(into: &out)
    }
}

extension [RuleFacts] {
    /// One line for each rule: id, state, its origin, what the file says, the guard's effect on the
    /// file's ramp, and an order that changes nothing now.
    package var lines: String {
        map { rule in
            let order = rule.order.map { " (\($0))" } ?? ""
            let source = rule.source.rawValue + order
            let ramp = rule.ramp.map { "\t\($0)" } ?? ""
            let kept = rule.kept.map { "\tkept order: \($0)" } ?? ""
            return "\(rule.id)\t\(rule.standing)\t\(source)\tfile: \(rule.file)\(ramp)\(kept)\n"
        }.joined()
    }
}

/// The state of a rule's guard.
package struct GuardFacts: Sendable {
    /// Its condition, in words.
    let text: String
    /// Different installs to which the rule was enforced in the window.
    let installs: Int
    /// The refused ones of them.
    let refused: Int
    /// The number of its falls since the start.
    let falls: UInt64
    /// The rule observes since its guard has fallen.
    let hasFallen: Bool

    package init(text: String, installs: Int, refused: Int, falls: UInt64, hasFallen: Bool) {
        self.text = text
        self.installs = installs
        self.refused = refused
        self.falls = falls
        self.hasFallen = hasFallen
    }

    func write(into out: inout JSONWriter) {
        out.object("guard") { out in
            out.member("rule", text)
            out.member("installs", installs)
            out.member("refused", refused)
            out.member("falls", falls)
            out.member("fallen", hasFallen)
        }
    }
}

extension [RuleFacts] {
    func writeGuards(into out: inout Exposition) {
        let guarded = compactMap { rule in rule.fallback.map { (rule.id, $0) } }
        out.family(
            "guard_falls_total",
            type: "counter",
            help: "Times a rule fell back to observe by its guard.",
            guarded.map { ([("rule", $0.0)], $0.1.falls) }
        )
        out.family(
            "guard_fallen",
            type: "gauge",
            help: "1 while a rule observes since its guard has fallen.",
            guarded.map { ([("rule", $0.0)], $0.1.hasFallen ? 1 : 0) }
        )
        out.family(
            "guard_installs",
            type: "gauge",
            help: "Installs to which a rule was enforced in its guard's window, estimated.",
            guarded.map { ([("rule", $0.0)], $0.1.installs) }
        )
        out.family(
            "guard_installs_refused",
            type: "gauge",
            help: "Those of them that are refused.",
            guarded.map { ([("rule", $0.0)], $0.1.refused) }
        )
    }
}
