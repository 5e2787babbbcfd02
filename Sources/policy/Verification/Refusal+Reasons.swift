import AppAttest
import KeyStore

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

    /// The refusal of a use of counter and challenge.
    init(_ refusal: ConsumeRefusal) {
        switch refusal {
        case .unknown: self = .keyUnknown
        case .revoked: self = .keyRevoked
        case .replayed: self = .counterReplayed
        case .challengeSpent: self = .challengeSpent
        case .challengesExhausted: self = .challengesExhausted
        // Signed again with a challenge, the same request is good.
        case .unanchored: self = .challengeMissing
        }
    }
}
