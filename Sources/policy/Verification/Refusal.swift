import AppAttest
import KeyStore
package import Rules

/// Why a request was refused. The raw value is the wire's `reason`, the metric label and the log
/// field; renaming one breaks dashboards and apps, so add rather than rename.
package enum Refusal: String, CaseIterable, Sendable {
    case assertionMissing = "assertion-missing"
    case challengeMissing = "challenge-missing"
    case challengeUnknown = "challenge-unknown"
    case challengeExpired = "challenge-expired"
    case challengeSpent = "challenge-spent"
    case counterReplayed = "counter-replayed"
    case keyUnknown = "key-unknown"
    case keyExpired = "key-expired"
    case assertionMalformed = "assertion-malformed"
    case signedFieldRepeated = "signed-field-repeated"
    case digestMissing = "digest-missing"
    case digestMismatch = "digest-mismatch"
    case attestationMalformed = "attestation-malformed"
    case requestMalformed = "request-malformed"
    case signatureMismatch = "signature-mismatch"
    case appMismatch = "app-mismatch"
    case environmentMismatch = "environment-mismatch"
    case categoryRefused = "category-refused"
    case versionRefused = "version-refused"
    case keyRevoked = "key-revoked"
    case certificateUntrusted = "certificate-untrusted"
    case certificateExpired = "certificate-expired"
    case nonceMismatch = "nonce-mismatch"
    case keyIDMismatch = "key-id-mismatch"
    case accessControlMismatch = "access-control-mismatch"
    case counterNotZero = "counter-not-zero"
    case receiptRefused = "receipt-refused"
    // Of Android phones.
    case certificateRevoked = "certificate-revoked"
    case keyUnsuitable = "key-unsuitable"
    case hardwareRefused = "hardware-refused"
    case bootRefused = "boot-refused"
    case appUnknown = "app-unknown"
    case signerMismatch = "signer-mismatch"
    case provisioningRefused = "provisioning-refused"
    case patchLevelRefused = "patch-level-refused"
    case attesterThrottled = "attester-throttled"
    case statusListUnavailable = "status-list-unavailable"
    case riskExceeded = "risk-exceeded"
    case riskUnknown = "risk-unknown"
    case deviceFlagged = "device-flagged"
    case deviceTokenMissing = "device-token-missing"
    case deviceTokenMalformed = "device-token-malformed"
    case deviceTokenUsed = "device-token-used"
    case deviceThrottled = "device-throttled"
    case deviceCheckUnavailable = "device-check-unavailable"
    // Of the tokens of `proofs`.
    case proofMissing = "proof-missing"
    case proofMalformed = "proof-malformed"
    case proofInvalid = "proof-invalid"
    case proofExpired = "proof-expired"
    case proofSpent = "proof-spent"
    case proofRefused = "proof-refused"
    case proofThrottled = "proof-throttled"
    case proofUnavailable = "proof-unavailable"
    case unsupported
    /// A CORS preflight that the rule forwards unjudged. The gateway never answers with it.
    case preflight
    case contentTooLarge = "content-too-large"
    /// The proxy that asks about the request has not sent all of its content.
    case contentUnseen = "content-unseen"
    case enrolmentThrottled = "enrolment-throttled"
    case enrolmentNotYet = "enrolment-not-yet"
    case addressThrottled = "address-throttled"
    /// The device is over the rule's rate.
    case keyThrottled = "key-throttled"
    case storeUnavailable = "store-unavailable"
    case clientDataAmbiguous = "client-data-ambiguous"
    case pathAmbiguous = "path-ambiguous"
    case connectionNomination = "connection-nomination"
    case methodCase = "method-case"
    case noRule = "no-rule"
    case challengesExhausted = "challenges-exhausted"
    case addressHeld = "address-held"
    case keyHeld = "key-held"
    case heldFull = "held-full"
    case spillFailed = "spill-failed"
    case sessionUnknown = "session-unknown"
    case sessionExpired = "session-expired"
    case sessionReplayed = "session-replayed"
    case sessionMismatch = "session-mismatch"
    case sessionRefused = "session-refused"
}

extension Refusal {
    init(_ reason: AssertionRefusal.Reason) {
        switch reason {
        case .malformed: self = .assertionMalformed
        case .signatureMismatch: self = .signatureMismatch
        case .appMismatch: self = .appMismatch
        case .counterReplayed: self = .counterReplayed
        case .categoryRefused: self = .categoryRefused
        case .versionRefused: self = .versionRefused
        }
    }

    /// The refusal of a request that a rule refuses before it is judged.
    package init(_ reason: DisputedRoute.Reason) {
        switch reason {
        case .pathAmbiguous: self = .pathAmbiguous
        case .connectionNomination: self = .connectionNomination
        case .methodCase: self = .methodCase
        }
    }

    /// Whether a rule refuses for this reason before it judges the request.
    var isDispute: Bool {
        switch self {
        case .pathAmbiguous, .connectionNomination, .methodCase: true
        default: false
        }
    }

    /// The refusal for a refused use of counter and challenge.
    init(_ refusal: ConsumeRefusal) {
        switch refusal {
        case .unknown: self = .keyUnknown
        case .revoked: self = .keyRevoked
        case .replayed: self = .counterReplayed
        case .challengeSpent: self = .challengeSpent
        case .challengesExhausted: self = .challengesExhausted
        // The same request is good if it is signed again with a challenge.
        case .unanchored: self = .challengeMissing
        }
    }
}

/// What a refusal tells the rule's guard about the refused install.
package enum GuardEvidence: Sendable {
    /// The app has a fault, and its next try fails too.
    case broken
    /// An app that works gets it now and then, and its next try passes. It counts against the rule
    /// when no request of the install passes.
    case retried
    /// It says nothing about the app: the sender is unknown, the device is meant to be refused, or
    /// the fault is the gateway's. If these counted, the clients that the rule keeps out could make
    /// its guard fall.
    case none
}

extension Refusal {
    package var guardEvidence: GuardEvidence {
        switch self {
        case .assertionMalformed, .signedFieldRepeated, .digestMissing, .digestMismatch,
            .clientDataAmbiguous, .signatureMismatch, .appMismatch, .environmentMismatch,
            .categoryRefused, .versionRefused, .contentTooLarge, .deviceTokenMissing,
            .deviceTokenMalformed, .proofMissing, .proofMalformed, .proofInvalid:
            .broken
        case .assertionMissing, .challengeMissing, .challengeUnknown, .challengeExpired,
            .challengeSpent, .counterReplayed, .deviceTokenUsed, .sessionUnknown, .sessionExpired,
            .sessionReplayed, .sessionMismatch, .sessionRefused, .proofExpired, .proofSpent:
            .retried
        case .keyUnknown, .keyExpired, .keyRevoked, .riskExceeded, .riskUnknown, .deviceFlagged,
            .deviceThrottled, .deviceCheckUnavailable, .unsupported, .preflight,
            .proofRefused, .proofThrottled, .proofUnavailable, .addressThrottled, .addressHeld,
            .keyHeld, .keyThrottled, .storeUnavailable, .challengesExhausted,
            .heldFull, .spillFailed, .contentUnseen, .pathAmbiguous, .connectionNomination,
            .methodCase, .noRule:
            .none
        // About attestations, and about calls of the gateway's own endpoints.
        case .attestationMalformed, .requestMalformed, .certificateUntrusted, .certificateExpired,
            .nonceMismatch, .keyIDMismatch, .accessControlMismatch, .counterNotZero,
            .receiptRefused, .certificateRevoked, .keyUnsuitable, .hardwareRefused, .bootRefused,
            .appUnknown, .signerMismatch, .provisioningRefused, .patchLevelRefused,
            .attesterThrottled, .statusListUnavailable, .enrolmentThrottled, .enrolmentNotYet:
            .none
        }
    }
}
