package import AppAttest
package import KeyStore
package import Rules
package import Sessions
package import Signatures

/// The verdict about a request and what belongs to it.
package struct Ruling: Sendable {
    /// How far a request has proved itself.
    package enum ProofLevel: Comparable, Sendable {
        /// Whatever it names, it has proved nothing.
        case claimed
        /// The key that it names has signed it.
        case signed
        /// All holds that can be judged without a party that failed.
        case complete
    }

    /// What a commit still has to say.
    package enum Pending: Hashable, Sendable {
        case nothing
        /// The verdict stands. A pass is good once over a crash only when this is on disk: the
        /// counter alone stops a replay.
        case durability(CommitTicket)
        /// The store decides at commit. `pass` is provisional: counter and challenge may turn out
        /// to be used.
        case verdict(CommitTicket)
        /// The key is not known here, and the store is asked for it. Then all is judged again.
        case key(CommitTicket)
    }

    package var verdict: Verdict
    package var level = ProofLevel.claimed
    /// By what the request proves itself; `nil` where it does not try, or it can't be told.
    package var proof: ProofKind?
    /// The key that the request names, whether or not it proved to hold it.
    package var keyID: KeyID?
    /// The App ID of the key; empty when the key is not known or its app not configured.
    package var appID = ""
    /// What the app has handed in when the key was enrolled; `nil` for nothing.
    package var context: [UInt8]?
    /// The build that the device has signed; `nil` where nothing is proven, and before iOS 27.
    package var appVersion: AppVersion?
    /// Who attested the key; `nil` when the key is not known.
    package var environment: KeyEnvironment?
    /// The rule forwards although the verdict is a refusal: clients that can't attest, and
    /// preflights.
    package var isExcused = false
    /// What is known of a challenge that is not; `nil` for nothing. The key that the request names
    /// has signed it, so no stranger has made it up.
    package var challengeNote: ChallengeNote?
    /// What Apple's risk metric says; `nil` where the rule does not ask, or nothing is proven.
    package var risk: RiskNote?
    /// What the content must hash to before its last bytes are released.
    package var expectedDigest: SHA256Digest?
    package var pending = Pending.nothing
    /// What Apple says of the device; `nil` where it was not asked, or told nothing.
    package var deviceBits: DeviceBits?
    /// What a request to open a session has proved; `nil` for all others.
    package var grant: SessionGrant?
    /// Why the session is not known; `nil` where the request names none, or a known one.
    package var sessionAbsence: SessionTable.Absence?

    /// Why the verdict is a refusal; `nil` where it is none.
    package var refusal: Refusal? {
        switch verdict {
        case .refuse(let refusal): refusal
        case .pass, .failure: nil
        }
    }

    /// The key that has signed the request; `nil` when none is known to have.
    package var signer: KeyID? { level >= .signed ? keyID : nil }

    /// Whether it rests on a test authority's key.
    package var isTest: Bool { environment == .test }

    /// Whether the store is asked for the key.
    package var awaitsKey: Bool { if case .key = pending { true } else { false } }

    /// The commit that must end before the request is forwarded.
    ///
    /// - `isEnforced`: a request that is only observed waits for the verdict that is told about
    ///   it, and not for the disk.
    package func awaitedTicket(isEnforced: Bool) -> CommitTicket? {
        switch pending {
        case .nothing: nil
        case .durability(let ticket): isEnforced ? ticket : nil
        case .verdict(let ticket), .key(let ticket): ticket
        }
    }

    /// The store has decided about counter and challenge, at once or with a commit.
    package mutating func settle(_ decision: ConsumeDecision) {
        pending = .nothing
        switch decision {
        case .admitted: level = .complete
        case .unassured:
            level = .complete
            verdict = .failure(.store)
        case .unavailable: verdict = .failure(.store)
        case .refused(let refusal):
            level = .signed
            verdict = .refuse(Refusal(refusal))
        }
    }

    /// The store has not said in time how the commit went.
    ///
    /// Where only the disk was awaited, counter and challenge are used in memory, so the assertion
    /// is good once. Where the store decides, it is not known whether they were free.
    package mutating func settleWithoutCommit() {
        switch pending {
        case .nothing, .verdict, .key: settle(.unavailable)
        case .durability: settle(.unassured)
        }
    }

    /// Of a CORS preflight that the rule forwards unjudged. No pass, so that nothing behind the
    /// gateway takes it for a proven request.
    static var preflight: Ruling {
        var ruling = Ruling(.refuse(.preflight))
        ruling.isExcused = true
        return ruling
    }

    package init(_ verdict: Verdict, keyID: KeyID? = nil, proof: ProofKind? = nil) {
        self.verdict = verdict
        self.keyID = keyID
        self.proof = proof
    }
}

/// What a head alone leads to.
package enum HeadVerdict: Sendable {
    /// The verdict is known.
    case ruled(Ruling)
    /// The content must be held and hashed first.
    case hold(Proof)

    /// Whether it does not refuse the request yet.
    package var mayPass: Bool {
        switch self {
        case .ruled(let ruling): ruling.refusal == nil
        case .hold: true
        }
    }
}
