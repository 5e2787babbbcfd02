import AppAttest
import Cryptography
import Encodings
import Expectations
import KeyStore
import Rules
import SoftwareAuthenticator
import TestSupport
import Testing

@testable import Verification

/// The genuine ones; none where the shared folder is absent.
private let genuine = SharedVectors.attestations.filter { !$0.isSoftware }
/// Those that software made, which the repository keeps.
private let software = SharedVectors.attestations.filter(\.isSoftware)

/// Genuine attestations through the enrolment. The challenge is the one thing that can't be ours:
/// what stands in its place is the hash that the device was given.
@Suite(.enabled(if: !genuine.isEmpty))
struct GenuineEnrolmentTests {
    private func policy(
        _ vector: AttestationVector,
        _ edit: (inout AppPolicy) -> Void = { _ in }
    ) throws -> AppPolicy {
        let environment = try #require(AttestationEnvironment(rawValue: vector.environment))
        return Trial.policy(vector.appId, [environment], edit)
    }

    private func action(
        _ vector: AttestationVector,
        _ fixture: EnrolmentFixture,
        object: [UInt8]? = nil,
        keyID: String? = nil,
        hash: [UInt8]? = nil,
        at now: UnixTime? = nil
    ) throws -> Result<KeyRecord, EnrolmentRefusal> {
        let given = try bytes(vector.clientDataHashB64)
        return fixture.examine(
            try object ?? bytes(vector.attestationB64),
            try #require(KeyID(base64: keyID ?? vector.keyId)),
            now: try now ?? moment(vector.verifyAt),
            clientDataHash: { _ in hash ?? given }
        )
    }

    private func reason(_ examined: Result<KeyRecord, EnrolmentRefusal>) -> String {
        guard case .failure(let refused) = examined else { return "" }
        return refused.refusal.rawValue
    }

    /// The one whose receipt's chain has an altered byte.
    private static let withoutReceipt = "2026-01-14-mikedan37-dev"

    @Test(arguments: genuine)
    func `a genuine key is enrolled at its time, and again without harm`(
        vector: AttestationVector
    ) async throws {
        let fixture = try EnrolmentFixture([try policy(vector)])
        await expectEqual(fixture.answer(try action(vector, fixture)).status, 201)
        let id = try #require(KeyID(base64: vector.keyId))
        let record = try #require(fixture.journal.record(id))
        #expect(record.publicKey.x963 == (try bytes(vector.publicKeyX963B64)))
        expectEqual(record.appID, vector.appId)
        expectEqual(record.environment.rawValue, vector.environment)
        expectEqual(record.counters, CounterState())
        expectEqual((record.receipt == nil), vector.id == Self.withoutReceipt)
        await expectEqual(fixture.answer(try action(vector, fixture)).status, 200)
    }

    @Test(arguments: genuine)
    func `where a receipt is required, a genuine key with a genuine receipt is enrolled`(
        vector: AttestationVector
    ) async throws {
        let fixture = try EnrolmentFixture([try policy(vector) { $0.receipt = .required }])
        let answer = await fixture.answer(try action(vector, fixture))
        expectEqual(answer.reason, vector.id == Self.withoutReceipt ? "receipt-refused" : "")
    }

    @Test(arguments: genuine)
    func `a genuine key is refused in another setting`(vector: AttestationVector) throws {
        let fixture = try EnrolmentFixture([try policy(vector)])
        let late = try moment(vector.leafNotAfter).advanced(bySeconds: 1)
        expectEqual(reason(try action(vector, fixture, at: late)), "certificate-expired")
        var hash = try bytes(vector.clientDataHashB64)
        hash[0] ^= 1
        expectEqual(reason(try action(vector, fixture, hash: hash)), "nonce-mismatch")
        let other = Base64.text([UInt8](repeating: 1, count: 32))
        expectEqual(reason(try action(vector, fixture, keyID: other)), "key-id-mismatch")
        let stranger = try EnrolmentFixture([Trial.policy(Trial.appID)])
        expectEqual(reason(try action(vector, stranger)), "app-mismatch")
        let environment: AttestationEnvironment =
            vector.environment == "production" ? .development : .production
        let elsewhere = try EnrolmentFixture([Trial.policy(vector.appId, [environment])])
        expectEqual(reason(try action(vector, elsewhere)), "environment-mismatch")
    }

    /// A test app trusts one more authority for its own keys; Apple's are not test keys.
    @Test(arguments: genuine)
    func `a genuine key is not let in as a test key`(vector: AttestationVector) throws {
        let fixture = try EnrolmentFixture([
            Trial.policy(vector.appId, []) { $0.testRoots = [Trial.authority.root] }
        ])
        expectEqual(reason(try action(vector, fixture)), "environment-mismatch")
    }

    @Test(arguments: genuine)
    func `the challenge of a genuine key is formed as its app is said to form it`(
        vector: AttestationVector
    ) async throws {
        guard let challenge = vector.challengeB64.flatMap({ Base64.decode($0) }) else { return }
        let hashing: AppPolicy.ClientDataHash =
            vector.clientDataHashFormedAs == "raw" ? .raw : .sha256
        let fixture = try EnrolmentFixture([try policy(vector) { $0.clientDataHash = hashing }])
        let action = fixture.examine(
            try bytes(vector.attestationB64),
            try #require(KeyID(base64: vector.keyId)),
            now: try moment(vector.verifyAt),
            clientDataHash: { $0 == .sha256 ? SHA256.digest(of: challenge).array : challenge }
        )
        await expectEqual(fixture.answer(action).status, 201)
    }
}

/// The same with the vectors of the repository, whose authority only a test app trusts.
@Suite struct SoftwareEnrolmentTests {
    private static func fixture(_ vector: AttestationVector) throws -> EnrolmentFixture {
        try EnrolmentFixture([
            Trial.policy(vector.appId, []) { $0.testRoots = [SharedVectors.softwareRoot] }
        ])
    }

    private static func action(
        _ vector: AttestationVector,
        _ fixture: EnrolmentFixture,
        hash: [UInt8]
    ) throws -> Result<KeyRecord, EnrolmentRefusal> {
        fixture.examine(
            try bytes(vector.attestationB64),
            try #require(KeyID(base64: vector.keyId)),
            now: try moment(vector.verifyAt),
            clientDataHash: { _ in hash }
        )
    }

    @Test(arguments: software)
    func `a key of each class is enrolled as a test key, and again without harm`(
        vector: AttestationVector
    ) async throws {
        let fixture = try Self.fixture(vector)
        let hash = try bytes(vector.clientDataHashB64)
        await expectEqual(fixture.answer(try Self.action(vector, fixture, hash: hash)).status, 201)
        let id = try #require(KeyID(base64: vector.keyId))
        let record = try #require(fixture.journal.record(id))
        #expect(record.publicKey.x963 == (try bytes(vector.publicKeyX963B64)))
        expectEqual(record.appID, vector.appId)
        expectEqual(record.environment, .test)
        expectEqual((record.receipt == nil), vector.id.hasSuffix("damaged-receipt"))
        await expectEqual(fixture.answer(try Self.action(vector, fixture, hash: hash)).status, 200)
    }

    @Test(arguments: software)
    func `a key of each class is refused with another challenge`(
        vector: AttestationVector
    ) async throws {
        let fixture = try Self.fixture(vector)
        let answer = await fixture.answer(try Self.action(vector, fixture, hash: [1]))
        expectEqual(answer.reason, "nonce-mismatch")
    }

    @Test(arguments: software)
    func `where Apple's root alone is trusted, none of them is enrolled`(
        vector: AttestationVector
    ) async throws {
        let fixture = try EnrolmentFixture([
            Trial.policy(vector.appId, [.production, .development])
        ])
        let hash = try bytes(vector.clientDataHashB64)
        let answer = await fixture.answer(try Self.action(vector, fixture, hash: hash))
        expectEqual(answer.reason, "certificate-untrusted")
    }
}

extension EnrolmentFixture {
    /// Judges an attestation whose challenge is good.
    fileprivate func examine(
        _ object: [UInt8],
        _ keyID: KeyID,
        now: UnixTime,
        clientDataHash: (AppPolicy.ClientDataHash) -> [UInt8]
    ) -> Result<KeyRecord, EnrolmentRefusal> {
        enrolment.attestor.examine(
            object,
            keyID: keyID,
            now: now,
            clientDataHash: clientDataHash
        )
        .map(\.record)
    }
}
