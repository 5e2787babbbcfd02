import AppAttest
import Cryptography
import HTTPWire
import KeyStore
import Rules
import Verification

/// The verdict of a request as far as it is known, and what is still to be done about it.
struct VerdictState: Sendable {
    /// The last one; `nil` for a request that was not judged, or needs no verdict.
    private var judged: JudgedVerdict?
    /// Whether it is more than provisional. Until then the head has no known fault, and the content
    /// has to come.
    private var isGiven = false
    private(set) var count = Count.none
    /// Whether the store was asked for its key. It is asked at most once for a request.
    private var hasSoughtKey = false
    /// Whether streamed content can no longer change the verdict.
    private var isEndJudged = false

    /// Whether the verdict was counted.
    enum Count {
        /// It was not counted, and need not be.
        case none
        /// It will be counted when it is final: content may change it.
        case due
        case done
    }

    // MARK: Changes

    /// The head has no fault.
    mutating func await(_ provisional: Verdict, _ enforcement: Enforcement) {
        judged = JudgedVerdict(provisional, enforcement)
    }

    mutating func give(_ verdict: Verdict, _ enforcement: Enforcement) {
        judged = JudgedVerdict(verdict, enforcement)
        isGiven = true
    }

    /// An awaited party has answered, or has failed to answer in time.
    ///
    /// - Returns: the current verdict.
    mutating func settle(_ settle: (inout Verdict) -> Void) -> (Verdict, Enforcement)? {
        guard let given else { return nil }
        var changed = given.verdict
        settle(&changed)
        judged = JudgedVerdict(changed, given.enforcement)
        return (changed, given.enforcement)
    }

    /// The content changes the verdict, or sets it before all of it was judged.
    ///
    /// - Returns: whether the verdict is enforced.
    mutating func change(to outcome: Verdict.Outcome) -> Enforcement {
        guard let before = judged else { return .observed }
        var verdict = before.verdict
        verdict.outcome = outcome
        judged = JudgedVerdict(verdict, before.enforcement)
        isGiven = true
        if before.enforcement == .observed { mustCount() }
        return before.enforcement
    }

    /// All content was judged. If there is a fault, it becomes the verdict.
    mutating func endJudged(_ fault: Verdict.Outcome?) -> Enforcement {
        isEndJudged = true
        return fault.map { change(to: $0) } ?? .observed
    }

    /// The store is asked for the key.
    mutating func keySought() { hasSoughtKey = true }

    /// Makes the verdict counted once it is final.
    mutating func mustCount() { if count == .none { count = .due } }

    /// Marks the verdict as counted.
    ///
    /// - Returns: whether the caller counts it now.
    mutating func counts() -> Bool {
        guard count != .done, isGiven else { return false }
        count = .done
        return true
    }

    // MARK: Questions

    /// The verdict and whether it is enforced, once there is one.
    var given: JudgedVerdict? { isGiven ? judged : nil }

    /// Whether the assertion was used: its counter, or its challenge.
    var isProven: Bool { given?.verdict.level == .complete }

    /// The key of the assertion or session that admitted the request; `nil` where there is none.
    var admittedKey: KeyID? { isProven && refusal == nil ? given?.verdict.keyID : nil }

    /// The refusal in the verdict, enforced or not.
    var refusal: Refusal? { given?.verdict.refusal }

    /// The key that the request names.
    var keyID: KeyID? { given?.verdict.keyID }
    /// Whether the rule's rate has counted the request.
    var rate: RateNote { given?.verdict.rate ?? .uncounted }

    var proof: ProofKind? { given?.verdict.proof }

    /// The key that has proven the request.
    var passedKey: KeyID? { isPass ? given?.verdict.keyID : nil }

    var isPass: Bool { given?.verdict.outcome == .pass }

    /// Whether the store is to be asked for the key that a verdict names, before anything else.
    func seeksKey(_ verdict: Verdict) -> Bool { verdict.awaitsKey && !hasSoughtKey }

    /// Whether the content must still be compared with the digest that the head states.
    var expectsDigest: Bool { !isEndJudged && expectedDigest != nil }

    var expectedDigest: SHA256Digest? { given?.verdict.expectedDigest }

    /// Whether the end of the content waits. It must have the digest that the head states, or the
    /// key that has signed may be revoked meanwhile.
    var withholdsEnd: Bool { expectsDigest || admittedKey != nil && !isEndJudged }
}

/// A verdict, and whether it is enforced.
///
/// A reference, so that whoever reads it copies nothing: a verdict is large.
final class JudgedVerdict: Sendable {
    let verdict: Verdict
    let enforcement: Enforcement

    init(_ verdict: Verdict, _ enforcement: Enforcement) {
        self.verdict = verdict
        self.enforcement = enforcement
    }
}

/// Whether a verdict other than pass refuses the request.
enum Enforcement: Equatable, Sendable {
    case observed
    case enforced

    /// Whether rule and rollout include the client.
    ///
    /// - signer: the key that has signed the request; `nil` when no signature was verified. A
    ///   client could choose an unsigned key id so that it falls outside; for such a request the
    ///   client's address counts.
    init(_ rule: Rule, signer: KeyID?, address: IPAddress, at now: UnixTime) {
        let refuses = rule.refuses { rollout in
            guard let key = Self.key(rule, signer) else {
                return rollout.enforces(address.bytes.span, at: now)
            }
            return rollout.enforces(key.digest.bytes.span, at: now)
        }
        self = refuses ? .enforced : .observed
    }

    /// The bucket of a request in the rollout of its rule, whatever the current mode and share.
    ///
    /// - signer, address: as in ``init(_:signer:address:at:)``.
    static func bucket(_ rule: Rule, signer: KeyID?, address: IPAddress) -> Bucket {
        if let key = key(rule, signer) {
            rule.rollout.bucket(of: key.digest.bytes.span)
        } else {
            rule.rollout.bucket(of: address.bytes.span)
        }
    }

    /// The key that the rollout counts by; `nil` where it counts by the address.
    private static func key(_ rule: Rule, _ signer: KeyID?) -> KeyID? {
        switch rule.rollout.subject {
        case .key: signer
        case .address: nil
        }
    }
}
