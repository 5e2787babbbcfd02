import AppAttest
import Cryptography
import Encodings
import HTTPWire
import KeyStore
import Rules
import SoftwareAuthenticator
import Testing
import Tokens
import Verification

@testable import Services

/// The enrolment endpoints with all that is behind them, in memory.
struct EnrolmentFixture {
    let journal: MemoryJournal
    let keys: KeyTable
    let issuer: ChallengeIssuer
    let enrolment: Enrolment
    var now = Trial.start
    /// Monotonic nanoseconds; far from zero, as a machine's is.
    var tick: UInt64 = 1 << 40
    /// What is found of the integrity tokens that an app asks for.
    var finding = TokenFinding.missing

    /// - `capacity`: how many spent challenges of each purpose are remembered.
    init(
        _ policies: [AppPolicy] = [EnrolmentFixture.testPolicy()],
        capacity: Int = ChallengeIssuer.capacityDefault,
        admission: EnrolmentAdmission.Settings = EnrolmentFixture.unlimited,
        journal: MemoryJournal = MemoryJournal(),
        epoch: UInt64 = 1,
        statusList: DatedStatusList? = nil,
        _ edit: (inout Enrolment.Limits) -> Void = { _ in }
    ) throws {
        self.journal = journal
        keys = try KeyTable(journal: journal)
        let secret = [UInt8](repeating: 7, count: 32)
        issuer = ChallengeIssuer(
            capacity: capacity,
            secrets: .init(
                own: secret + [UInt8(truncatingIfNeeded: epoch)],
                enrolment: secret
            ),
            epoch: epoch
        )
        var limits = Enrolment.Limits()
        edit(&limits)
        enrolment = Enrolment(
            KeyAttestor(apps: policies, statusList: { statusList }),
            decider: Decider(keys: keys, challenges: issuer, sessions: SessionTable()),
            admission: EnrolmentAdmission(admission),
            limits: limits
        )
    }

    /// A rate that no test reaches.
    static let unlimited: EnrolmentAdmission.Settings = {
        var settings = EnrolmentAdmission.Settings()
        (settings.perSecond, settings.burst) = (10_000, 1_000_000)
        return settings
    }()

    /// An app that trusts the software authority.
    static func testPolicy(_ edit: (inout AppPolicy) -> Void = { _ in }) -> AppPolicy {
        Trial.policy(Trial.appID, []) { policy in
            policy.testRoots = [Trial.authority.root]
            edit(&policy)
        }
    }

    func challenge(_ purpose: ChallengePurpose = .enrolment) throws -> String {
        String(decoding: issuer.issue(purpose, now: now.seconds), as: UTF8.self)
    }

    /// The document that a client sends for a key with a context.
    func document(_ key: SoftwareKey, challenge: String, context: [UInt8]) -> String {
        let object = key.attestation(challenge: challenge, context: context, at: now)
        let document = EnrolmentFixture.document(key.keyID.base64, Base64.text(object), challenge)
        return document.dropLast() + #","context":"\#(Base64.text(context))"}"#
    }

    /// The document that a client sends for a key.
    func document(
        _ key: SoftwareKey,
        challenge: String,
        hashing: AppPolicy.ClientDataHash = .sha256,
        damage: AttestationDamage? = nil,
        receiptDamage: ReceiptDamage? = nil
    ) -> String {
        let text = Array(challenge.utf8)
        let object = key.attestation(
            clientDataHash: hashing == .sha256 ? SHA256.digest(of: text).array : text,
            at: now,
            damage: damage,
            receiptDamage: receiptDamage
        )
        return EnrolmentFixture.document(key.keyID.base64, Base64.text(object), challenge)
    }

    static func document(_ keyID: String, _ attestation: String, _ challenge: String) -> String {
        #"{"key_id":"\#(keyID)","attestation":"\#(attestation)","challenge":"\#(challenge)"}"#
    }

    /// How a document is answered, the store asked where it has to be.
    func enrol(_ document: String, addressWait: UInt64? = nil) async -> Answer {
        var call = EnrolmentCall(Array(document.utf8), now: now, tick: tick)
        call.addressWait = addressWait
        return await answer(enrolment.examine(call))
    }

    func challenges(_ document: String, from entry: AddressEntry? = nil) -> Enrolment.Outcome {
        let bytes = Array(document.utf8)
        let caller = EnrolmentAdmission.Caller(address: .v4(0x7F00_0001), entry: entry)
        return enrolment.challenges(for: bytes.span, from: caller, now: now, at: tick)
    }

    func answer(_ step: Enrolment.Step) async -> Answer {
        switch step {
        case .ended(let outcome): return Answer(ServiceResult(outcome).response)
        case .check(let awaited):
            let note = IntegrityNote(finding, awaited.rule)
            return await answer(enrolment.checked(awaited, note, at: tick))
        case .store(let record, let serial):
            return await answer(enrolment.stored(await store(record), spending: serial))
        }
    }

    /// How an attestation is answered whose challenge nobody looks at.
    func answer(_ examined: Result<KeyRecord, EnrolmentRefusal>) async -> Answer {
        switch examined {
        case .failure(let refusal): return await answer(.refuse(refusal))
        case .success(let record):
            switch await store(record) {
            case .inserted(let keyID): return await answer(.enrolled(keyID, isNew: true))
            case .existing(let keyID): return await answer(.enrolled(keyID, isNew: false))
            case .revoked, .challengeSpent, .failed:
                preconditionFailure("EnrolmentFixture: a store in memory")
            }
        }
    }

    private func store(_ record: KeyRecord) async -> EnrolOutcome {
        await withCheckedContinuation { continuation in
            keys.enrol(record) { continuation.resume(returning: $0) }
        }
    }

    struct Answer {
        var status: Int
        var body: String
        var fields: [String: String] = [:]
        /// The `reason` of a problem document; empty where there is none.
        var reason = ""

        init(_ response: LocalResponse) {
            status = response.status
            body = String(decoding: response.content, as: UTF8.self)
            fields = Dictionary(response.fields) { first, _ in first }
            reason = response.outcome.reason
        }
    }
}
