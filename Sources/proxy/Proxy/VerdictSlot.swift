import AppAttest
import KeyStore
import Verification

/// The columns of a rule in the tally of verdicts: each verdict, observed or enforced, and the
/// key's attestor and platform.
package enum VerdictSlot {
    /// The attestor of a request's key. The raw value is the label: add, do not rename.
    private enum Attestor: String {
        case genuine
        case test
    }

    /// The attestor and the platform of a key; the last ones for a request that has no key which is
    /// known here.
    private static let sources: [(attestor: String, platform: String)] =
        [Attestor.genuine, .test].flatMap { attestor in
            DevicePlatform.allCases.map { (attestor.rawValue, $0.rawValue) }
        } + [("none", "none")]

    private static func place(_ environment: KeyEnvironment?, _ platform: DevicePlatform?) -> Int {
        let first: Int
        switch environment {
        case .production, .development: first = 0
        case .test: first = DevicePlatform.allCases.count
        case nil: return sources.count - 1
        }
        return switch platform {
        case .apple, nil: first
        case .android: first + 1
        }
    }

    private static let reasons: [String] = ["", "off"] + Refusal.allCases.map(\.rawValue)
    private static let places = Dictionary(
        uniqueKeysWithValues: Refusal.allCases.enumerated().map { ($1, $0 + 2) }
    )
    private static let failures = Verdict.Dependency.allCases.map(\.refusal.rawValue)

    /// Slots for a reason: one for each source, observed and enforced.
    private static let width = sources.count * 2

    package static let count = reasons.count * width

    static func index(
        _ outcome: Verdict.Outcome,
        isEnforced: Bool,
        environment: KeyEnvironment?,
        platform: DevicePlatform?
    ) -> Int {
        let place: Int
        switch outcome {
        case .pass: place = 0
        case .refuse(let refusal): place = places[refusal] ?? 1
        case .failure(let dependency): place = places[dependency.refusal] ?? 1
        }
        return place * width + (isEnforced ? sources.count : 0)
            + Self.place(environment, platform)
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
            ("enforced", slot % width >= sources.count ? "true" : "false"),
            ("environment", sources[slot % sources.count].attestor),
            ("platform", sources[slot % sources.count].platform),
        ]
    }
}
