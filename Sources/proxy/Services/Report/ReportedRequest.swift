package import AppAttest
package import HTTPWire
package import KeyStore
package import Rules
package import Verification

/// What a report counts of a request with a verdict.
package struct ReportedRequest: Sendable {
    /// The answer that `enforce` would have given.
    package enum Fate: Sendable {
        case forwarded
        /// It would have been refused at each share that includes this bucket.
        case refused(Bucket)
    }

    package let outcome: Verdict.Outcome
    /// How it has proved itself; `nil` where it has not.
    package let proof: ProofKind?
    /// Whether Google Play's word meets the rule's `integrity`; `nil` where none was asked for.
    package let meetsIntegrity: Bool?
    package let environment: KeyEnvironment?
    package let build: AppBuild
    /// The named key, where it is enrolled here.
    package let install: KeyID?
    /// The client's address, which counts as the install where that is not known.
    package let address: IPAddress
    package let fate: Fate
    /// Whether the request was really refused.
    package let isRefused: Bool

    package init(
        _ verdict: Verdict,
        claimed: AppVersion?,
        address: IPAddress,
        fate: Fate,
        isRefused: Bool
    ) {
        outcome = verdict.outcome
        proof = outcome == .pass ? verdict.proof : nil
        meetsIntegrity = verdict.tokens.integrity?.isMet
        environment = verdict.environment
        build = AppBuild(signed: verdict.appVersion, claimed: claimed)
        install = verdict.environment == nil ? nil : verdict.keyID
        self.address = address
        self.fate = fate
        self.isRefused = isRefused
    }
}

/// The classes of verdicts in a report. The raw value is the word in reports: add, do not rename.
package enum VerdictClass: String, CaseIterable, Sendable {
    /// The verdict is `pass`.
    case verified
    /// The request had no proof.
    case missing
    /// The app says that it can't attest.
    case unsupported
    /// A check of the proof failed.
    case invalid
    /// A party that is needed has failed.
    case errors
    /// A CORS preflight that the rule forwards unjudged.
    case preflight

    package init(_ outcome: Verdict.Outcome) {
        self =
            switch outcome {
            case .pass: .verified
            case .refuse(.assertionMissing), .refuse(.proofMissing): .missing
            case .refuse(.unsupported): .unsupported
            case .refuse(.preflight): .preflight
            case .refuse: .invalid
            case .failure: .errors
            }
    }
}
