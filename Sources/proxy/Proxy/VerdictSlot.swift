import KeyStore
import Verification

/// The columns of a rule in the tally of verdicts: each verdict, observed or enforced, and the
/// key's attestor.
package enum VerdictSlot {
    /// The attestor of a request's key. The raw value is the label: add, do not rename.
    private enum Attestor: String, CaseIterable {
        case genuine
        case test
        /// The request has no key that is known here.
        case none

        init(_ environment: KeyEnvironment?) {
            switch environment {
            case .production, .development: self = .genuine
            case .test: self = .test
            case nil: self = .none
            }
        }

        var place: Int {
            switch self {
            case .genuine: 0
            case .test: 1
            case .none: 2
            }
        }
    }

    private static let reasons: [String] = ["", "off"] + Refusal.allCases.map(\.rawValue)
    private static let places = Dictionary(
        uniqueKeysWithValues: Refusal.allCases.enumerated().map { ($1, $0 + 2) }
    )
    private static let failures = Verdict.Dependency.allCases.map(\.refusal.rawValue)
    private static let attestors = Attestor.allCases

    /// Slots for a reason: one for each attestor, observed and enforced.
    private static let width = attestors.count * 2

    /// Slots for a rule.
    package static let count = reasons.count * width

    static func index(
        _ verdict: Verdict,
        isEnforced: Bool,
        environment: KeyEnvironment?
    ) -> Int {
        let place: Int
        switch verdict {
        case .pass: place = 0
        case .refuse(let refusal): place = places[refusal] ?? 1
        case .failure(let dependency): place = places[dependency.refusal] ?? 1
        }
        return place * width + (isEnforced ? attestors.count : 0) + Attestor(environment).place
    }

    /// The meaning of a slot; the labels of the metric.
    package static func labels(_ slot: Int) -> [(String, String)] {
        let reason = reasons[slot / width]
        let verdict =
            switch reason {
            case "": "pass"
            case let failed where failures.contains(failed): "error"
            default: "refuse"
            }
        return [
            ("verdict", verdict), ("reason", reason),
            ("enforced", slot % width >= attestors.count ? "true" : "false"),
            ("environment", attestors[slot % attestors.count].rawValue),
        ]
    }
}
