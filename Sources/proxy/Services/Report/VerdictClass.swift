package import Verification

/// What a report tells apart among verdicts. The raw value is the word in reports: add, do not
/// rename.
package enum VerdictClass: String, CaseIterable, Sendable {
    /// The verdict is `pass`.
    case verified
    /// No assertion came.
    case missing
    /// The app says that it can't attest.
    case unsupported
    /// Something came that does not hold.
    case invalid
    /// A party that is needed has failed.
    case errors
    /// A CORS preflight that the rule forwards unjudged.
    case preflight

    package init(_ verdict: Verdict) {
        self =
            switch verdict {
            case .pass: .verified
            case .refuse(.assertionMissing): .missing
            case .refuse(.unsupported): .unsupported
            case .refuse(.preflight): .preflight
            case .refuse: .invalid
            case .failure: .errors
            }
    }
}
