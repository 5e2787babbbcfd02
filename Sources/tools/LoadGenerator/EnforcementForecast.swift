import Cryptography
import Encodings
import Rules
import Verification

/// Says for a request with a fault whether the gateway refuses it: by the mode and the rollout of
/// the rule, as the configuration has them.
///
/// The bucket of a key is a function of the rule and the key, so it is known here. The client
/// address by which the rollout counts a request that no key has signed is known to the gateway
/// alone: a balancer or a network in between may change it. Neither are orders of operators and
/// guards known here.
struct EnforcementForecast: Sendable {
    /// What happens to a request with a fault.
    enum Finding: Equatable, Sendable {
        case refused
        /// The rule observes, or its rollout leaves the client out.
        case admitted
        case unknown
    }

    private let rule: Rule
    private let proof: ProofKind
    /// The most seconds by which the gateway's clock may differ from this one, while the share
    /// grows.
    private static let skewMax: Int64 = 5

    init(_ rule: Rule, by proof: ProofKind) {
        self.rule = rule
        self.proof = proof
    }

    /// Whether the rule refuses some faults and admits others.
    var isPartial: Bool { rule.mode == .enforce && rule.rollout.schedule != .fixed(.whole) }

    /// The bucket of a key, by the text of its id; `nil` where the rollout does not count by it.
    func bucket(of keyID: [UInt8]) -> Bucket? {
        guard rule.mode == .enforce, rule.rollout.dependsOnBucket, rule.rollout.subject == .key,
            let digest = Base64.decode(keyID.span)
        else { return nil }
        return rule.rollout.bucket(of: digest.span)
    }

    /// The finding for a request that was on its way from one moment to another.
    ///
    /// - bucket: of the key that has signed it.
    func finding(
        _ sending: Sending,
        _ bucket: Bucket?,
        from start: UnixTime,
        to end: UnixTime
    ) -> Finding {
        switch rule.mode {
        case .off, .observe: return .admitted
        case .deny: return .refused
        case .enforce: break
        }
        // The share never shrinks.
        let least = rule.rollout.share(at: UnixTime(seconds: start.seconds - Self.skewMax))
        let most = rule.rollout.share(at: UnixTime(seconds: end.seconds + Self.skewMax))
        if least == .whole { return .refused }
        if most == .none { return .admitted }
        guard let bucket, sending.isCountedByKey(by: proof) else { return .unknown }
        if bucket.isWithin(least) { return .refused }
        return bucket.isWithin(most) ? .unknown : .admitted
    }
}
