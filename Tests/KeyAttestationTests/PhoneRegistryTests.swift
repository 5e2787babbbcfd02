import Cryptography
import Encodings
import Expectations
import Foundation
import KeyAttestation
import KeyAttestationServer
import SoftwareAuthenticator
import Testing

/// The server of the documentation (Tests/Sample/Sources/KeyAttestationServer) and a software
/// phone.
@Suite struct PhoneRegistryTests {
    private static let package = "com.example.shop"
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)

    private let authority = SoftwareAuthority(
        seed: [31],
        madeAt: UnixTime(seconds: 1_800_000_000)
    )
    private let key = ECPrivateKey(generating: .p256)

    private func registry(_ statusList: StatusList = .empty) -> PhoneRegistry {
        PhoneRegistry(
            app: ExpectedAndroidApp(
                package: Self.package,
                signers: [SoftwarePhone.signer],
                policy: .standard
            ),
            roots: [authority.root],
            statusList: statusList
        )
    }

    private func enrol(at registry: inout PhoneRegistry) throws -> KeyAttestationRecord {
        let challenge = registry.makeChallenge()
        let device = SoftwareDevice(
            authority: authority,
            package: Self.package,
            phone: SoftwarePhone()
        )
        let chain = device.chain(
            for: try #require(P256PublicKey(x963: key.x963)),
            attestationChallenge: Array(challenge),
            at: UnixTime(seconds: 1_800_000_000)
        ).map { Data($0) }
        let record = try registry.enrol(chain: chain, challenge: challenge, now: Self.now)
        // The challenge is spent.
        #expect(throws: PhoneRegistry.Failure.challengeUnknown) {
            try registry.enrol(chain: chain, challenge: challenge, now: Self.now)
        }
        return record
    }

    private func signature(_ counter: UInt32, _ clientData: Data) throws -> String {
        let message = try #require(
            UnverifiedKeySignature.message(
                package: Self.package,
                counter: SignCounter(rawValue: counter),
                clientDataHash: SHA256.digest(of: Array(clientData)).array
            )
        )
        let signature = key.signature(overDigest: SHA256.digest(of: message).array.span)
        return "v1.\(counter).\(String(decoding: Base64.encodeURL(signature), as: UTF8.self))"
    }

    @Test func `the documented server enrols a phone's key, and admits each request once`() throws {
        var registry = registry()
        let record = try enrol(at: &registry)
        expectEqual(record.package, Self.package)
        expectEqual(record.counter, .zero)
        let body = Data("body".utf8)
        let challenge = registry.makeChallenge()
        let signature = try signature(1, challenge + body)
        func admit(_ challenge: Data, _ body: Data) throws {
            try registry.admit(
                signature: signature,
                keyID: record.keyID.base64,
                challenge: challenge,
                body: body
            )
        }
        #expect(throws: PhoneRegistry.Failure.signature) {
            try admit(challenge, Data("other".utf8))
        }
        try admit(challenge, body)
        // By its counter, before its challenge is looked at.
        #expect(throws: PhoneRegistry.Failure.signature) { try admit(challenge, body) }
    }

    @Test func `counters survive the documented server's store`() throws {
        var registry = registry()
        let record = try enrol(at: &registry)
        let challenge = registry.makeChallenge()
        try registry.admit(
            signature: signature(7, challenge),
            keyID: record.keyID.base64,
            challenge: challenge,
            body: Data()
        )
        var again = self.registry()
        try again.restore(registry.export())
        let next = again.makeChallenge()
        let repeated = try signature(7, next)
        #expect(throws: PhoneRegistry.Failure.signature) {
            try again.admit(
                signature: repeated,
                keyID: record.keyID.base64,
                challenge: next,
                body: Data()
            )
        }
    }

    @Test func `a phone whose certificate is revoked later is turned away`() throws {
        var registry = registry()
        let record = try enrol(at: &registry)
        let serial = try #require(record.serials.dropFirst().first)
        let list = #"{"entries": {"\#(serial)": {"status": "REVOKED"}}}"#
        try registry.update(statusList: Data(list.utf8))
        let challenge = registry.makeChallenge()
        let signature = try signature(1, challenge)
        #expect(throws: PhoneRegistry.Failure.revoked) {
            try registry.admit(
                signature: signature,
                keyID: record.keyID.base64,
                challenge: challenge,
                body: Data()
            )
        }
    }

    @Test func `a record is read back as it was written, in texts that people can read`() throws {
        var registry = registry()
        let record = try enrol(at: &registry)
        let json = try JSONEncoder().encode(record)
        try expectEqual(JSONDecoder().decode(KeyAttestationRecord.self, from: json), record)
        let members = try #require(JSONSerialization.jsonObject(with: json) as? [String: Any])
        #expect(members["key_id"] as? String == record.keyID.base64)
        #expect(members["package"] as? String == Self.package)
        #expect(members["counter"] as? Int == 0)
        #expect(members["serials"] as? [String] == record.serials.map(\.description))
        let attester = try #require(members["attester_id"] as? String)
        expectEqual(Data(base64Encoded: attester), Data(record.attesterID))
        let wrong = String(decoding: json, as: UTF8.self)
            .replacing(attester.replacing("/", with: "\\/"), with: "*")
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(KeyAttestationRecord.self, from: Data(wrong.utf8))
        }
        #expect(!(VerifiedKeyAttestation.self is any Decodable.Type))
    }

    @Test func `refusals say in a sentence what is wrong, and what to look at`() throws {
        var refusal: KeyAttestationRefusal?
        do throws(KeyAttestationRefusal) {
            _ = try UnverifiedKeyAttestation(chain: [])
        } catch {
            refusal = error
        }
        let found = try #require(refusal)
        expectEqual(
            found.localizedDescription,
            "The bytes are no chain of certificates with a key description."
        )
        expectEqual(found.failureReason, "0 certificates")
        expectEqual(found.recoverySuggestion, KeyAttestationRefusal.Reason.malformed.nextStep)
        do {
            _ = try StatusList(json: Array("[]".utf8))
            Issue.record("a text that is no list was read")
        } catch {
            expectEqual(
                error.localizedDescription,
                "The text is no status list of certificates."
            )
            #expect(error.failureReason == error.detail)
            #expect(error.recoverySuggestion?.isEmpty == false)
        }
    }
}
