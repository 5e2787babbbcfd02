package import AppAttest
package import HTTPWire
package import KeyStore
package import Rules
package import Verification

/// What a report counts of a request that has a verdict.
package struct ReportedRequest: Sendable {
    /// Whom `enforce` would have answered how.
    package enum Fate: Sendable {
        case forwarded
        /// It would have been refused at each share that takes in this bucket.
        case refused(Bucket)
    }

    package let verdict: Verdict
    package let environment: KeyEnvironment?
    package let build: AppBuild
    /// The key that it names, where that is enrolled here.
    package let install: KeyID?
    /// The client's address, which stands for the install where that is not known.
    package let address: IPAddress
    package let fate: Fate
    /// Whether it was really refused.
    package let isRefused: Bool

    package init(
        _ ruling: Ruling,
        claimed: AppVersion?,
        address: IPAddress,
        fate: Fate,
        isRefused: Bool
    ) {
        verdict = ruling.verdict
        environment = ruling.environment
        build = AppBuild(signed: ruling.appVersion, claimed: claimed)
        install = ruling.environment == nil ? nil : ruling.keyID
        self.address = address
        self.fate = fate
        self.isRefused = isRefused
    }
}

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
