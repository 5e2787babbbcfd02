import Encodings
import Telemetry

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
            "counter",
            "Times a rule fell back to observe by its guard.",
            guarded.map { ([("rule", $0.0)], $0.1.falls) }
        )
        out.family(
            "guard_fallen",
            "gauge",
            "1 while a rule observes since its guard has fallen.",
            guarded.map { ([("rule", $0.0)], $0.1.hasFallen ? 1 : 0) }
        )
        out.family(
            "guard_installs",
            "gauge",
            "Installs to which a rule was enforced in its guard's window, estimated.",
            guarded.map { ([("rule", $0.0)], $0.1.installs) }
        )
        out.family(
            "guard_installs_refused",
            "gauge",
            "Those of them that are refused.",
            guarded.map { ([("rule", $0.0)], $0.1.refused) }
        )
    }
}
