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

/// The shares of the kinds, and the kind of the n-th request.
package struct Mix: Equatable, Sendable {
    /// Millionths by kind, in the order of `RequestKind.allCases`; they add up to a million.
    package let millionths: [Int]
    private let bounds: [Int]
    private static let kinds = RequestKind.allCases

    /// Nothing but good requests.
    package static let allGood = Mix(others: [:])

    /// The rest that the others leave is good.
    private init(others: [RequestKind: Int]) {
        let good = 1_000_000 - others.values.reduce(0, +)
        millionths = RequestKind.allCases.map { $0 == .good ? good : others[$0] ?? 0 }
        var end = 0
        bounds = millionths.map { share in
            end += share
            return end
        }
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

    package func share(of kind: RequestKind) -> Int {
        RequestKind.allCases.firstIndex(of: kind).map { millionths[$0] } ?? 0
    }

    /// The kind of the n-th request. It is equal in every run, and the kinds form no pattern.
    package func kind(at number: UInt64) -> RequestKind {
        let point = Int(Scatter.word(number) % 1_000_000)
        for place in bounds.indices where point < bounds[place] { return Self.kinds[place] }
        return .good
    }

    /// `good 90%, replayed 10%`.
    package var text: String {
        zip(RequestKind.allCases, millionths).filter { $0.1 > 0 }
            .map { "\($0.0.rawValue) \(Share(millionths: $0.1)?.text ?? "")" }
            .joined(separator: ", ")
    }
}

/// When requests are sent.
package struct Pacing: Equatable, Sendable {
    /// Requests a second over all event loops; `nil` in a closed loop.
    package let rate: Double?
    /// At most this number of requests over all event loops.
    package let countLimit: UInt64?
    /// No request is due later than this, counted from the end of the warm-up; nanoseconds.
    package let duration: UInt64?
    /// Requests that are due before this are sent and judged, and their latency is not recorded.
    package let warmUp: UInt64

    package init(rate: Double?, countLimit: UInt64?, duration: UInt64?, warmUp: UInt64) {
        self.rate = rate
        self.countLimit = countLimit
        self.duration = duration
        self.warmUp = warmUp
    }

    /// Nanoseconds from the start until an event loop's n-th request is due; `nil` in a closed
    /// loop.
    ///
    /// The event loops take turns, so all of them together keep one even beat.
    package func due(_ number: UInt64, loop: Int, of loops: Int) -> UInt64? {
        guard let rate else { return nil }
        let place = Double(number) * Double(loops) + Double(loop)
        return UInt64(clamping: Int64(place / rate * 1e9))
    }

    /// The most requests that an event loop sends, by their count.
    package func countLimit(loop: Int, of loops: Int) -> UInt64 {
        guard let countLimit else { return .max }
        let (share, rest) = countLimit.quotientAndRemainder(dividingBy: UInt64(max(loops, 1)))
        return share + (UInt64(loop) < rest ? 1 : 0)
    }

    /// Nanoseconds from the start after which no request is due.
    package var end: UInt64 {
        guard let duration else { return .max }
        let (end, overflow) = warmUp.addingReportingOverflow(duration)
        return overflow ? .max : end
    }

    /// The number of requests; `nil` when it depends on the speed of the answers.
    package var expectedCount: UInt64? {
        guard let rate, duration != nil else { return countLimit }
        let byTime = UInt64(clamping: Int64((Double(end) / 1e9 * rate).rounded(.up)))
        return min(byTime, countLimit ?? .max)
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
