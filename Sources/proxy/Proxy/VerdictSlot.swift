import Verification

/// The columns of a rule in the tally of verdicts: each verdict, observed or enforced, and whether
/// it rests on a test key.
package enum VerdictSlot {
    private static let reasons: [String] = ["", "off"] + Refusal.allCases.map(\.rawValue)
    private static let places = Dictionary(
        uniqueKeysWithValues: Refusal.allCases.enumerated().map { ($1, $0 + 2) }
    )

    /// Slots for a rule.
    package static let count = reasons.count * 4

    static func index(_ verdict: Verdict, isEnforced: Bool, isTest: Bool) -> Int {
        let place: Int
        switch verdict {
        case .pass: place = 0
        case .refuse(let refusal): place = places[refusal] ?? 1
        case .failure: place = places[.storeUnavailable] ?? 1
        }
        return place * 4 + (isEnforced ? 2 : 0) + (isTest ? 1 : 0)
    }

    /// What a slot stands for; the labels of the metric.
    package static func labels(_ slot: Int) -> [(String, String)] {
        let reason = reasons[slot / 4]
        let verdict =
            switch reason {
            case "": "pass"
            case Refusal.storeUnavailable.rawValue: "error"
            default: "refuse"
            }
        return [
            ("verdict", verdict), ("reason", reason),
            ("enforced", slot % 4 >= 2 ? "true" : "false"),
            ("environment", slot % 2 == 1 ? "test" : "genuine"),
        ]
    }
}
