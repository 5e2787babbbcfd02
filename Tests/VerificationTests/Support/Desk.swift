import AppAttest
import ByteCoding
import Challenges
import Cryptography
import KeyStore
import Rules
import SoftwareAuthenticator
import Testing
import Verification

@testable import Services

/// The enrolment endpoints with all that is behind them, in memory.
struct Desk {
    let journal = MemoryJournal()
    let keys: KeyTable
    let issuer: ChallengeIssuer
    let enrolment: Enrolment
    var now = Trial.start
    /// Monotonic nanoseconds; far from zero, as a machine's is.
    var tick: UInt64 = 1 << 40

    /// - `capacity`: how many spent challenges of each purpose are remembered.
    init(
        _ policies: [AppPolicy] = [Desk.testPolicy()],
        capacity: Int = ChallengeIssuer.capacityDefault,
        _ edit: (inout Enrolment.Limits) -> Void = { _ in }
    ) throws {
        keys = try KeyTable(journal: journal)
        issuer = ChallengeIssuer(
            capacity: capacity,
            secret: Array(repeating: 7, count: 32),
            epoch: 1
        )
        var limits = Enrolment.Limits()
        edit(&limits)
        enrolment = Enrolment(
            apps: policies,
            roots: [AppleRoots.appAttestation],
            receiptRoots: [AppleRoots.rootG3],
            keys: keys,
            issuer: issuer,
            limits: limits
        )
    }

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
            clientDataHash: hashing == .sha256 ? SHA256.digest(of: text).octets : text,
            at: now,
            damage: damage,
            receiptDamage: receiptDamage
        )
        return Desk.document(key.keyID.base64, Base64.text(object), challenge)
    }

    static func document(_ keyID: String, _ attestation: String, _ challenge: String) -> String {
        #"{"key_id":"\#(keyID)","attestation":"\#(attestation)","challenge":"\#(challenge)"}"#
    }

    /// How a document is answered, the store asked where it has to be.
    func enrol(_ document: String) async -> Answer {
        let octets = Array(document.utf8)
        return await answer(enrolment.enrol(octets.span, now: now, at: tick))
    }

    func challenges(_ document: String) -> Enrolment.Action {
        let octets = Array(document.utf8)
        return enrolment.challenges(for: octets.span, now: now.seconds)
    }

    func answer(_ action: Enrolment.Action) async -> Answer {
        switch action {
        case .challenges, .enrolled, .refuse: return Answer(ServiceResult(action).response)
        case .store(let record):
            let outcome = await withCheckedContinuation { continuation in
                keys.enrol(record) { continuation.resume(returning: $0) }
            }
            return await answer(enrolment.stored(outcome))
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
