import Rules
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

    /// One row of the table of outcomes.
    private struct Row {
        let kind: RequestKind
        /// For people and JSON.
        let title: String
        /// The refusal by a rule for assertions; `nil` for admission.
        let refusal: Refusal?
        /// The gateway finds the fault after it has verified who signed, so a rollout counts the
        /// request by its key.
        var isCountedByKey = false

        init(_ kind: RequestKind, _ title: String, refused: Refusal?, byKey: Bool = false) {
            (self.kind, self.title, refusal, isCountedByKey) = (kind, title, refused, byKey)
        }
    }

    private var row: Row {
        switch self {
        case .good: Row(.good, "good", refused: nil)
        case .missing: Row(.missing, "missing", refused: .assertionMissing)
        // The counter is judged before the challenge, so a replay is never `challenge-spent`.
        case .replayed: Row(.replayed, "replayed", refused: .counterReplayed, byKey: true)
        case .tamperedSignature: Row(.tampered, "tampered signature", refused: .signatureMismatch)
        case .tamperedTarget: Row(.tampered, "tampered target", refused: .signatureMismatch)
        // Whether the digest or the signature is judged first depends on when the content comes.
        case .tamperedContent: Row(.tampered, "tampered content", refused: .signatureMismatch)
        case .staleCounter: Row(.stale, "stale counter", refused: .counterReplayed, byKey: true)
        case .staleEpoch: Row(.stale, "stale challenge", refused: .challengeUnknown, byKey: true)
        case .staleExpired:
            Row(.stale, "expired challenge", refused: .challengeExpired, byKey: true)
        case .unknown: Row(.unknown, "unknown key", refused: .keyUnknown)
        case .opening: Row(.good, "session opening", refused: nil)
        }
    }

    package var kind: RequestKind { row.kind }
    /// For people and JSON.
    package var title: String { row.title }

    /// Whether a rollout counts the request by the key that has signed it. A session that has ended
    /// meanwhile is no proof of its key.
    func isCountedByKey(by proof: ProofKind) -> Bool { row.isCountedByKey && proof == .assertion }

    /// The reason of the refusal that is expected where the rule enforces; `nil` for admission.
    ///
    /// - `hasDeclaredDigest`: the rule compares the content with the digest that the head declares.
    ///   Otherwise changed content shows in the signature.
    /// - proof: by what good requests prove themselves.
    func expected(hasDeclaredDigest: Bool, by proof: ProofKind = .assertion) -> Refusal? {
        if self == .tamperedContent, hasDeclaredDigest { return .digestMismatch }
        guard proof == .session else { return row.refusal }
        if self == .replayed { return .sessionReplayed }
        return row.refusal == .signatureMismatch ? .sessionMismatch : row.refusal
    }

    /// Whether admitting it would admit an assertion twice, or an overtaken one.
    package var isReplay: Bool { self == .replayed || self == .staleCounter }
}

/// The shares of the kinds, and the kind of the n-th request.
package struct Mix: Equatable, Sendable {
    /// Millionths by kind, in the order of `RequestKind.allCases`; they add up to a million.
    package let millionths: [Int]

    /// Nothing but good requests.
    package static let allGood = Mix(others: [:])

    /// The rest that the others leave is good.
    private init(others: [RequestKind: Int]) {
        let good = 1_000_000 - others.values.reduce(0, +)
        millionths = RequestKind.allCases.map { $0 == .good ? good : others[$0] ?? 0 }
    }

    /// Reads `replayed=3%,tampered=2%,missing=1%`; the rest is good.
    ///
    /// `nil` for another word, a repeated word, a value that is no percentage, or more than 100 %
    /// together.
    package init?(_ text: String) {
        var others: [RequestKind: Int] = [:]
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: "=", omittingEmptySubsequences: false)
            guard words.count == 2, let kind = RequestKind(rawValue: String(words[0])),
                let share = Share(percent: words[1]), kind != .good, others[kind] == nil
            else { return nil }
            others[kind] = share.millionths
        }
        guard others.values.reduce(0, +) <= 1_000_000 else { return nil }
        self.init(others: others)
    }

    private var shares: Zip2Sequence<[RequestKind], [Int]> { zip(RequestKind.allCases, millionths) }

    package func share(of kind: RequestKind) -> Int { shares.first { $0.0 == kind }?.1 ?? 0 }

    /// The kind of the n-th request. It is equal in every run, and the kinds form no pattern.
    package func kind(at number: UInt64) -> RequestKind {
        var point = Int(Scatter.word(number) % 1_000_000)
        for (kind, share) in shares {
            point -= share
            if point < 0 { return kind }
        }
        return .good
    }

    /// `good 90%, replayed 10%`.
    package var text: String {
        shares.filter { $0.1 > 0 }
            .map { "\($0.0.rawValue) \(Share(millionths: $0.1)?.text ?? "")" }
            .joined(separator: ", ")
    }
}

/// The kinds of requests that a mix has shares of.
package enum RequestKind: String, CaseIterable, Sendable {
    /// Signed as the rule asks.
    case good
    /// Without any proof.
    case missing
    /// A request that was admitted, byte for byte.
    case replayed
    /// Signed, then changed: the signature, the target or the content.
    case tampered
    /// Too old: a challenge of another start or past its time, or a counter below an admitted one.
    case stale
    /// Signed by a key that was never enrolled.
    case unknown
}

/// Numbers that look random and are equal in every run (the finalizer of SplitMix64).
enum Scatter {
    static func word(_ number: UInt64) -> UInt64 {
        var word = number &* 0x9E37_79B9_7F4A_7C15 &+ 0x9E37_79B9_7F4A_7C15
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }
}
