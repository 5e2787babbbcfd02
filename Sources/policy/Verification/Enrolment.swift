package import AppAttest
internal import Cryptography
import Encodings
package import KeyStore
import RequestBinding
package import Rules
package import Signatures
package import Tokens

/// The gateway's own endpoints: challenges, and the enrolment of keys.
///
/// ``EnrolmentAdmission`` decides who may enrol when a client asks for an enrolment challenge: a
/// client that has one may enrol. For an attestation that does not verify, nothing is stored and no
/// challenge is spent.
///
/// The cost that an attacker may cause at `…/keys`: an attestation is examined only with an unspent
/// challenge of this gateway, and that costs three signatures. The first try of a challenge is free
/// of limits, so that a neighbour with the same address, or a flood of bad attestations from many,
/// keeps no admitted client out. There are as many first tries as admitted challenges. Each further
/// try counts against the address's failures and the rate of all examinations. The memory of tried
/// challenges is bounded (``ChallengeIssuer/rememberedBlocksMax``); beyond it every try counts.
///
/// Platforms differ in what attests a key and in nothing else: ``KeyAttestor`` judges it.
package final class Enrolment: Sendable {
    /// The answer to a call.
    package enum Outcome: Sendable {
        /// These challenges are good for this number of seconds.
        case challenges(ChallengePurpose, [String], lifetimeSeconds: Int64)
        /// The key is enrolled: by this call or an earlier one.
        case enrolled(KeyID, isNew: Bool)
        case refuse(EnrolmentRefusal)
    }

    /// The next step of an enrolment: see ``enrol(_:)``.
    package enum Step: Sendable {
        case ended(Outcome)
        /// Store this key, then report the result to ``stored(_:spending:)``.
        case store(KeyRecord, spending: ChallengeSerial)
        /// Have the call's integrity token checked, then report the result to
        /// ``checked(_:_:at:)``.
        case check(AwaitedIntegrity)

        package static func enrolled(_ keyID: KeyID, isNew: Bool) -> Step {
            .ended(.enrolled(keyID, isNew: isNew))
        }

        package static func refuse(_ refusal: EnrolmentRefusal) -> Step {
            .ended(.refuse(refusal))
        }
    }

    /// A key that may be enrolled as far as Google Play's verdict lets it.
    package struct AwaitedIntegrity: Sendable {
        let attested: KeyAttestor.Attested
        let serial: ChallengeSerial
        package let rule: IntegrityRule
        package let binding: IntegrityBinding
    }

    /// The limits on the cost that an attacker may cause.
    package struct Limits: Sendable {
        /// Attestations that are examined per second, beyond the first try of each challenge, over
        /// all event loops: each costs three signatures.
        package var examinationsPerSecond = 500
        package var examinationsBurst = 1_000

        package init() {}
    }

    /// The most challenges of one call.
    private static let challengesPerCallMax = 8

    package let decider: Decider
    private let admission: EnrolmentAdmission
    let attestor: KeyAttestor
    private let examinationThrottle: Throttle

    package init(
        _ attestor: KeyAttestor,
        decider: Decider,
        admission: EnrolmentAdmission,
        limits: Limits = Limits()
    ) {
        self.decider = decider
        self.admission = admission
        self.attestor = attestor
        examinationThrottle = Throttle(
            perSecond: limits.examinationsPerSecond,
            burst: limits.examinationsBurst
        )
    }

    /// The proofs whose tokens an enrolment may carry, each once.
    package var tokens: [TokenProof] { attestor.tokens }

    // MARK: POST …/challenges

    private static let challengeMembers: Set = ["purpose", "count", "key_id"]

    /// Serves `{"purpose": "enrolment" | "assertion", "count": 1…8, "key_id"}`; all have defaults.
    ///
    /// Assertion challenges have no limit over all clients: issuing keeps nothing, and such a limit
    /// would let some clients use up what others need. The caller of this function limits what an
    /// address may ask for. Enrolment challenges are admitted one by one, so a call may get fewer
    /// than it asked for.
    ///
    /// - `caller`: who asks; the key is taken from the content.
    /// - `now`: the wall clock.
    /// - `tick`: monotonic nanoseconds.
    package func challenges(
        for content: Span<UInt8>,
        from caller: EnrolmentAdmission.Caller,
        now: UnixTime,
        at tick: UInt64
    ) -> Outcome {
        var purpose = ChallengePurpose.assertion
        var count = 1
        var caller = caller
        if !content.isEmpty {
            guard let document = JSONDocument(content, members: Self.challengeMembers) else {
                return .refuse(EnrolmentRefusal(.requestMalformed))
            }
            if document.has("purpose") {
                guard let named = document.string("purpose").flatMap(ChallengePurpose.init(name:))
                else { return .refuse(EnrolmentRefusal(.requestMalformed)) }
                purpose = named
            }
            if document.has("count") {
                guard let asked = document.integer("count"),
                    (1...Self.challengesPerCallMax).contains(asked)
                else { return .refuse(EnrolmentRefusal(.requestMalformed)) }
                count = asked
            }
            if document.has("key_id") {
                guard let keyID = document.string("key_id").flatMap(KeyID.init(base64:)) else {
                    return .refuse(EnrolmentRefusal(.requestMalformed))
                }
                caller.keyID = keyID
            }
        }
        if purpose == .enrolment {
            switch admit(caller, count: count, now: now, tick: tick) {
            case .admitted(let some): count = some
            case .refused(let refusal): return .refuse(refusal)
            }
        }
        let texts = (0..<count).map { _ in
            String(decoding: decider.issue(purpose, now: now.seconds), as: UTF8.self)
        }
        let lifetime = decider.challenges.lifetime(of: purpose)
        return .challenges(purpose, texts, lifetimeSeconds: lifetime)
    }

    private enum Admission {
        /// This number, at least one.
        case admitted(Int)
        case refused(EnrolmentRefusal)
    }

    private func admit(
        _ caller: EnrolmentAdmission.Caller,
        count: Int,
        now: UnixTime,
        tick: UInt64
    ) -> Admission {
        for admitted in 0..<count {
            let draw = RandomBytes.word()
            let refusal: EnrolmentRefusal
            switch admission.ask(caller, now: now, tick: tick, draw: draw) {
            case .admitted: continue
            case .throttled(let wait):
                refusal = EnrolmentRefusal(.enrolmentThrottled, waitSeconds: wait)
            case .notYet(let wait): refusal = EnrolmentRefusal(.enrolmentNotYet, waitSeconds: wait)
            }
            return admitted > 0 ? .admitted(admitted) : .refused(refusal)
        }
        return .admitted(count)
    }

    // MARK: POST …/keys

    private static let keyMembers: Set = [
        "platform", "key_id", "attestation", "chain", "challenge", "context",
    ]

    /// Judges `{"key_id", "attestation", "challenge"}`, or for an Android phone `{"platform":
    /// "android", "key_id", "chain", "challenge"}`; with `"context"` where the app has one.
    ///
    /// Checked in this order: the document; the challenge; whether the address, and all together,
    /// have examinations left, unless it is the challenge's first try; the attestation, as
    /// ``KeyAttestor`` does; whether the certificate that attested an Android key has attested too
    /// many. A key that is already enrolled is answered 200, whatever the state of its challenge,
    /// and keeps its counter.
    package func examine(_ call: EnrolmentCall) -> Step {
        let (now, tick) = (call.now, call.tick)
        guard
            let document = JSONDocument(
                call.content.span,
                members: Self.keyMembers,
                lists: ["chain"]
            ),
            let keyText = document.string("key_id"), let keyID = KeyID(base64: keyText),
            let evidence = AttestationText(document),
            let challenge = document.string("challenge").map({ Array($0.utf8) }),
            case .readable(let context) = Self.context(of: document)
        else { return .refuse(.inVain(.requestMalformed)) }
        let serial: ChallengeSerial
        switch decider.examine(challenge.span, purpose: .enrolment, now: now.seconds) {
        case .valid(let good): serial = good
        case .unknown, .foreign: return repeated(keyID, .challengeUnknown)
        case .expired: return repeated(keyID, .challengeExpired)
        case .spent: return repeated(keyID, .challengeSpent)
        }
        if !decider.isFirstTry(of: serial) {
            if let addressWait = call.addressWait {
                return .refuse(.waiting(.addressThrottled, addressWait))
            }
            if let wait = examinationThrottle.take(now: tick) {
                return .refuse(.waiting(.enrolmentThrottled, wait))
            }
        }
        let clientData = EnrolmentLines.clientData(
            challenge: challenge,
            contextDigest: context.map { SHA256.digest(of: $0).array }
        )
        let examined = attestor.examine(
            evidence,
            keyID: keyID,
            context: context,
            now: now
        ) { hashing in
            hashing == .sha256 ? SHA256.digest(of: clientData).array : clientData
        }
        switch examined {
        case .failure(let refusal): return .refuse(refusal)
        case .success(let attested):
            return spend(serial, for: attested, SHA256.digest(of: clientData), at: tick)
        }
    }

    /// - clientDataHash: what the app of an Android phone has handed to the system.
    private func spend(
        _ serial: ChallengeSerial,
        for attested: KeyAttestor.Attested,
        _ clientDataHash: SHA256Digest,
        at tick: UInt64
    ) -> Step {
        let record = attested.record
        switch decider.spend(serial) {
        case .spent:
            guard let rule = attestor.integrity(of: record.appID) else {
                return store(attested, spending: serial, at: tick)
            }
            // No service is asked about a key that its attester may not have.
            if let wait = attested.attester.flatMap({ admission.wait(attester: $0, tick: tick) }) {
                return throttled(serial, wait)
            }
            let binding = IntegrityBinding(
                package: record.appID,
                keyID: record.keyID,
                clientDataHash: clientDataHash
            )
            return .check(
                AwaitedIntegrity(attested: attested, serial: serial, rule: rule, binding: binding)
            )
        case .spentBefore: return repeated(record.keyID, .challengeSpent)
        case .noRoom: return .refuse(EnrolmentRefusal(.challengesExhausted))
        }
    }

    /// Takes the key's place among those of its attester, last of all: what is refused before takes
    /// none. Otherwise one chain, sent again and again with bad tokens, would use up what all
    /// phones of a batch have.
    private func store(
        _ attested: KeyAttestor.Attested,
        spending serial: ChallengeSerial,
        at tick: UInt64
    ) -> Step {
        if let wait = attested.attester.flatMap({ admission.take(attester: $0, tick: tick) }) {
            return throttled(serial, wait)
        }
        return .store(attested.record, spending: serial)
    }

    /// The challenge is good again: the key may be enrolled later.
    private func throttled(_ serial: ChallengeSerial, _ wait: UInt64) -> Step {
        decider.takeBack(serial)
        return .refuse(.waiting(.attesterThrottled, wait))
    }

    /// A call whose challenge is not good: its client may have lost the answer to an earlier call,
    /// and then needs no new key. Nothing is changed, so nothing is verified. A client that knows
    /// the id of another client's key learns no more than a request with that id would tell.
    private func repeated(_ keyID: KeyID, _ refusal: Refusal) -> Step {
        // Before the table: a key moves from the enrolling ones to the table.
        let isEnrolling = decider.isEnrolling(keyID)
        switch decider.find(keyID) {
        case .known(let key) where key.isRevoked, .outdated(let key) where key.isRevoked:
            return .refuse(EnrolmentRefusal(.keyRevoked))
        case .known: return .enrolled(keyID, isNew: false)
        case .outdated, .unavailable: return .refuse(EnrolmentRefusal(.storeUnavailable))
        case .unknown where isEnrolling: return .refuse(EnrolmentRefusal(.storeUnavailable))
        // Where other gateways enrol too, a retry of the enrolment tells.
        case .unknown, .absent: return .refuse(EnrolmentRefusal(refusal))
        }
    }

    /// The integrity token was checked. If it refuses the enrolment, the challenge is good again:
    /// the app gets another token for the same key.
    ///
    /// - `tick`: monotonic nanoseconds.
    package func checked(
        _ awaited: AwaitedIntegrity,
        _ note: IntegrityNote,
        at tick: UInt64
    ) -> Step {
        let rule = awaited.rule
        let isRefused =
            rule.action == .refuse && !note.isMet
            && (note.refusal != nil || rule.proof.onError == .refuse)
        guard isRefused else { return store(awaited.attested, spending: awaited.serial, at: tick) }
        decider.takeBack(awaited.serial)
        switch note.refusal {
        case nil: return .refuse(EnrolmentRefusal(.proofUnavailable))
        case .proofMissing: return .refuse(EnrolmentRefusal(.proofMissing))
        case let refusal?: return .refuse(.inVain(refusal))
        }
    }

    private enum ContextReading {
        /// `nil`: there is none.
        case readable([UInt8]?)
        case malformed
    }

    private static func context(of document: JSONDocument) -> ContextReading {
        guard document.has("context") else { return .readable(nil) }
        guard let text = document.string("context"), let bytes = Base64.decode(text),
            (1...EnrolmentLines.contextBytesMax).contains(bytes.count)
        else { return .malformed }
        return .readable(bytes)
    }

    /// The store has answered. If it failed, the challenge is good again: the client sends the same
    /// attestation once more, since Apple attests a key only once.
    package func stored(_ outcome: EnrolOutcome, spending serial: ChallengeSerial) -> Step {
        switch outcome {
        case .inserted(let keyID): return .enrolled(keyID, isNew: true)
        case .existing(let keyID): return .enrolled(keyID, isNew: false)
        case .revoked: return .refuse(EnrolmentRefusal(.keyRevoked))
        case .challengeSpent: return .refuse(EnrolmentRefusal(.challengeSpent))
        case .failed:
            decider.takeBack(serial)
            return .refuse(EnrolmentRefusal(.storeUnavailable))
        }
    }
}

/// Why a call of the enrolment endpoints is refused, and what its answer carries.
///
/// It never carries a challenge: a new one has to be admitted first.
package struct EnrolmentRefusal: Error, Sendable {
    package let refusal: Refusal
    /// Seconds to wait, where the rate is too high now.
    package let waitSeconds: Int
    /// Whether the call's own content was examined and found wrong, which cost a verification. A
    /// used challenge, a rate and a store say nothing about the content.
    package let isInVain: Bool
    /// The app of the attestation, where the configuration does not have that app.
    package let foreignApp: AppIDHash?

    init(_ refusal: Refusal, waitSeconds: Int = 1) {
        self.init(refusal, waitSeconds: waitSeconds, isInVain: false, nil)
    }

    private init(_ refusal: Refusal, waitSeconds: Int, isInVain: Bool, _ foreignApp: AppIDHash?) {
        self.refusal = refusal
        self.waitSeconds = waitSeconds
        self.isInVain = isInVain
        self.foreignApp = foreignApp
    }

    /// A refusal of the call's own content.
    static func inVain(_ refusal: Refusal, app: AppIDHash? = nil) -> EnrolmentRefusal {
        EnrolmentRefusal(refusal, waitSeconds: 1, isInVain: true, app)
    }

    /// A refusal with a wait of this number of nanoseconds.
    static func waiting(_ refusal: Refusal, _ nanoseconds: UInt64) -> EnrolmentRefusal {
        let seconds = Int(clamping: nanoseconds / 1_000_000_000)
        return EnrolmentRefusal(refusal, waitSeconds: min(seconds, 86_400) + 1)
    }
}
