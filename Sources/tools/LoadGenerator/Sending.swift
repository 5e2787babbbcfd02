import Verification

/// The parts of a request, and so the expected answer. These are the rows of the summary.
package enum Sending: Int, CaseIterable, Sendable {
    case good
    case missing
    case replayed
    /// One byte of the signature differs.
    case tamperedSignature
    /// The target has a part in its query that was not signed.
    case tamperedTarget
    /// One byte of the content differs.
    case tamperedContent
    /// A counter that was never admitted, below one that was.
    case staleCounter
    /// A challenge of another start of the gateway.
    case staleEpoch
    /// A challenge past its time.
    case staleExpired
    case unknown
    /// Opens a session, in the place of a request.
    case opening

    package var kind: RequestKind {
        switch self {
        case .good, .opening: .good
        case .missing: .missing
        case .replayed: .replayed
        case .tamperedSignature, .tamperedTarget, .tamperedContent: .tampered
        case .staleCounter, .staleEpoch, .staleExpired: .stale
        case .unknown: .unknown
        }
    }

    /// For people and JSON.
    package var title: String {
        switch self {
        case .good, .missing, .replayed: kind.rawValue
        case .tamperedSignature: "tampered signature"
        case .tamperedTarget: "tampered target"
        case .tamperedContent: "tampered content"
        case .staleCounter: "stale counter"
        case .staleEpoch: "stale challenge"
        case .staleExpired: "expired challenge"
        case .unknown: "unknown key"
        case .opening: "session opening"
        }
    }

    /// The reason of the refusal that is expected where the rule enforces; `nil` for admission.
    ///
    /// - `hasDeclaredDigest`: the rule compares the content with the digest that the head declares.
    ///   Otherwise changed content shows in the signature.
    /// - proof: by what good requests prove themselves.
    func expected(hasDeclaredDigest: Bool, by proof: ProofKind = .assertion) -> Refusal? {
        let mismatch: Refusal = proof == .session ? .sessionMismatch : .signatureMismatch
        return switch self {
        case .good, .opening: nil
        case .missing: .assertionMissing
        // The counter is judged before the challenge, so a replay is never `challenge-spent`.
        case .replayed: proof == .session ? .sessionReplayed : .counterReplayed
        case .staleCounter: .counterReplayed
        case .tamperedSignature, .tamperedTarget: mismatch
        case .tamperedContent: hasDeclaredDigest ? .digestMismatch : mismatch
        case .staleEpoch: .challengeUnknown
        case .staleExpired: .challengeExpired
        case .unknown: .keyUnknown
        }
    }

    /// Whether admitting it would admit an assertion twice, or an overtaken one.
    package var isReplay: Bool { self == .replayed || self == .staleCounter }
}
