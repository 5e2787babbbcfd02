package import AppAttest
package import KeyStore
package import Rules
package import Signatures
package import Tokens

/// The verdict about a request, with its details.
package struct Verdict: Sendable {
    /// How far a request has proved itself.
    package enum ProofLevel: Comparable, Sendable {
        /// It has proved nothing, whatever key it names.
        case claimed
        /// The key that it names has signed it.
        case signed
        /// All checks passed that do not need a failed party.
        case complete
    }

    /// What a commit still has to decide.
    package enum Pending: Hashable, Sendable {
        case nothing
        /// The verdict is final. After a crash a pass is good only once if this is on disk, since
        /// the counter alone stops a replay.
        case durability(CommitTicket)
        /// The store decides at commit. `pass` is provisional: counter and challenge may be used
        /// already.
        case verdict(CommitTicket)
        /// The key is not known here, and the store is asked for it. Then the request is judged
        /// again.
        case key(CommitTicket)
    }

    package var outcome: Outcome
    package var level = ProofLevel.claimed
    /// How the request proves itself; `nil` where it does not try, or where that is unclear.
    package var proof: ProofKind?
    /// The key that the request names, proved or not.
    package var keyID: KeyID?
    /// The App ID of the key; empty when the key is not known or its app not configured.
    package var appID = ""
    /// The app's context from the enrolment of the key; `nil` for none.
    package var context: [UInt8]?
    /// The build that the device has signed; `nil` where nothing is proven, and before iOS 27.
    package var appVersion: AppVersion?
    /// Who attested the key; `nil` when the key is not known.
    package var environment: KeyEnvironment?
    /// Which system the key's device has; `nil` when the key is not known.
    package var platform: DevicePlatform?
    /// The rule forwards although the verdict is a refusal. This applies to clients that can't
    /// attest, and to preflights.
    package var isExcused = false
    /// The note about an unknown challenge; `nil` for nothing. The named key has signed the
    /// challenge, so no attacker has made it up.
    package var challengeNote: ChallengeNote?
    /// The note about Apple's risk metric; `nil` where the rule does not ask, or nothing is proven.
    package var risk: RiskNote?
    /// The digest that the content must have before its last bytes are released.
    package var expectedDigest: SHA256Digest?
    package var pending = Pending.nothing
    /// What the rule's rate has to do with the request.
    package internal(set) var rate = RateNote.uncounted
    /// Whether the refusal costs the client's address nothing, though a signature was verified.
    package internal(set) var isForgiven = false
    /// Apple's bits of the device; `nil` where Apple was not asked, or did not answer.
    package var deviceBits: DeviceBits?
    /// The proof of a request to open a session; `nil` for all others.
    package var grant: SessionGrant?
    /// Why the session is not known; `nil` where the request names none, or a known one.
    package var sessionAbsence: SessionTable.Absence?
    /// What is known of the request's tokens.
    package internal(set) var tokens: TokenCourse {
        get { course?.tokens ?? TokenCourse() }
        set { course = Course(newValue) }
    }
    /// `nil` where nothing is known of them, as of most requests: a verdict is copied, and should
    /// cost few counts.
    private var course: Course?

    private final class Course: Sendable {
        let tokens: TokenCourse

        init(_ tokens: TokenCourse) { self.tokens = tokens }
    }

    /// What was found of the integrity token; `nil` where none was asked for so far.
    package var integrity: IntegrityNote? { course?.tokens.integrity }
    /// The tokens beside the proof that are good.
    var proofsBeside: [TokenProof] { course?.tokens.beside ?? [] }

    /// Whether the address has caused a verification that led to nothing.
    package var isInVain: Bool {
        if case .refuse = outcome { !isForgiven } else { false }
    }

    /// Why the verdict is a refusal; `nil` for other verdicts.
    package var refusal: Refusal? {
        switch outcome {
        case .refuse(let refusal): refusal
        case .pass, .failure: nil
        }
    }

    /// The key that has signed the request; `nil` when no signature was verified.
    package var signer: KeyID? { level >= .signed ? keyID : nil }

    /// Whether the request's key is of a test authority.
    package var isTest: Bool { environment == .test }

    /// Whether the store is asked for the key.
    package var awaitsKey: Bool { if case .key = pending { true } else { false } }

    /// The commit that must end before the request is forwarded.
    ///
    /// - `isEnforced`: whether the rule is enforced. An observed request waits for the verdict,
    ///   which is logged, and not for the disk.
    package func awaitedTicket(isEnforced: Bool) -> CommitTicket? {
        switch pending {
        case .nothing: nil
        case .durability(let ticket): isEnforced ? ticket : nil
        case .verdict(let ticket), .key(let ticket): ticket
        }
    }

    /// Takes the store's decision about counter and challenge, made at once or at a commit.
    package mutating func settle(_ decision: ConsumeDecision) {
        pending = .nothing
        switch decision {
        case .admitted: level = .complete
        case .unassured:
            level = .complete
            outcome = .failure(.store)
        case .unavailable: outcome = .failure(.store)
        case .refused(let refusal):
            level = .signed
            outcome = .refuse(Refusal(refusal))
        }
    }

    /// The store has not reported the commit in time.
    ///
    /// If only the disk was awaited, counter and challenge are used in memory, so the assertion is
    /// good once. If the store decides, the gateway does not know whether they were free.
    package mutating func settleWithoutCommit() {
        switch pending {
        case .nothing, .verdict, .key: settle(.unavailable)
        case .durability: settle(.unassured)
        }
    }

    /// The verdict for a CORS preflight that the rule forwards unjudged. It is no pass, so that no
    /// origin takes it for a proven request.
    static var preflight: Verdict {
        var verdict = Verdict(.refuse(.preflight))
        verdict.isExcused = true
        return verdict
    }

    package init(_ outcome: Outcome, keyID: KeyID? = nil, proof: ProofKind? = nil) {
        self.outcome = outcome
        self.keyID = keyID
        self.proof = proof
    }
}

/// The result of judging a head alone.
package enum HeadVerdict: Sendable {
    /// The verdict is known.
    case judged(Verdict)
    /// The content must be held and hashed first.
    case hold(Proof)

    /// Whether the request may still pass.
    package var mayPass: Bool {
        switch self {
        case .judged(let verdict): verdict.refusal == nil
        case .hold: true
        }
    }
}

extension Verdict {
    /// The result of judging a request.
    package enum Outcome: Equatable, Sendable {
        /// All demands of the rule hold.
        case pass
        /// A demand does not hold.
        case refuse(Refusal)
        /// Unknown: a party that is needed failed.
        case failure(Dependency)

        /// The word for logs and the origin: `pass`, `refuse` or `error`.
        package var word: String {
            switch self {
            case .pass: "pass"
            case .refuse: "refuse"
            case .failure: "error"
            }
        }

        /// The reason for logs, metrics and the origin; empty for a pass.
        package var reason: String {
            switch self {
            case .pass: ""
            case .refuse(let refusal): refusal.rawValue
            case .failure(let dependency): dependency.refusal.rawValue
            }
        }
    }

    /// A party that the verdict needs.
    package enum Dependency: String, CaseIterable, Sendable {
        case store
        /// Apple's DeviceCheck.
        case deviceCheck = "device-check"
        /// The issuer of a token, or the service that knows it.
        case proof

        /// The refusal where a rule refuses on its failure.
        package var refusal: Refusal {
            switch self {
            case .store: .storeUnavailable
            case .deviceCheck: .deviceCheckUnavailable
            case .proof: .proofUnavailable
            }
        }
    }
}

/// Whether a rule's rate has counted a request.
package enum RateNote: Hashable, Sendable {
    /// It is not counted: the rule has no rate, or the request is refused for another reason.
    case uncounted
    case counted
    /// The device is over the rate, for this number of nanoseconds.
    case over(wait: UInt64)
}

/// A note for operators about a signed challenge that the gateway does not know. The client does
/// not get it. The raw value is API of the log.
package enum ChallengeNote: String, Hashable, Sendable {
    /// None of the secrets that the gateways of a fleet share made its code. This gateway has not
    /// read the newest one, the issuer uses another database, or the secret is gone.
    case unknownSecret = "unknown-secret"
}

/// Apple's risk metric of a request's key, for a rule that asks for it.
package struct RiskNote: Hashable, Sendable {
    /// `nil` when it is unknown or too old.
    package let metric: UInt16?
    /// The rule's mark against the key; `nil` for none. The request may pass nevertheless.
    package let mark: Refusal?

    /// The value of `App-Attest-Risk`: an item of RFC 9651, a number or the token `unknown`, with
    /// the mark as its parameter.
    package var text: String {
        let value = metric.map { String($0) } ?? "unknown"
        return mark.map { "\(value);mark=\($0.rawValue)" } ?? value
    }

    init(_ rule: RiskRule, _ risk: KeyRisk, now: UnixTime) {
        metric = risk.metric(at: now.seconds, daysMax: Int64(rule.daysMax))
        let finding = rule.finding(metric)
        guard rule.objects(to: finding) else {
            mark = nil
            return
        }
        mark = finding == .unknown ? .riskUnknown : .riskExceeded
    }
}

/// How a request proves itself.
package enum ProofKind: Hashable, Sendable {
    /// A signature of the device's key.
    case assertion
    /// The code of a session that was opened with an assertion.
    case session
    /// A token of the section `proofs`, which is bound to no request.
    case token(TokenProof)

    /// The word in the log and for the origin: API. No token has the name of another kind.
    package var name: String {
        switch self {
        case .assertion: "assertion"
        case .session: "session"
        case .token(let proof): proof.name
        }
    }
}
