import Cryptography
import Expectations
import Foundation
import TestSupport
import Testing

@testable import AppAttest

/// What servers write into their stores and read back.
@Suite struct RecordTests {
    private let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }()

    private func again<Value: Codable>(_ value: Value) throws -> Value {
        try JSONDecoder().decode(Value.self, from: encoder.encode(value))
    }

    @Test func `a record is read back as it was written, in texts that people can read`() throws {
        let verified = try AttestationCase(AppleSamples.year2026).verified()
        let record = verified.record
        try expectEqual(again(record), record)
        let json = try JSONSerialization.jsonObject(with: encoder.encode(record))
        let members = try #require(json as? [String: Any])
        #expect(members["key_id"] as? String == AppleSamples.year2026.keyID)
        #expect(members["counter"] as? Int == 0)
        #expect(members["app_id"] as? String == AppleSamples.year2026.appID)
        #expect(members["environment"] as? String == "production")
        let receipt = try #require(members["receipt"] as? String)
        expectEqual(Data(base64Encoded: receipt), Data(verified.receipt))
        let key = try #require(members["public_key"] as? String)
        expectEqual(Data(base64Encoded: key), Data(verified.publicKey.x963))
    }

    @Test func `what a device and its certificate say is read back`() throws {
        let verified = try AttestationCase(AppleSamples.year2026).verified()
        #expect(verified.details.accessControl != nil)
        try expectEqual(again(verified.details), verified.details)
        try expectEqual(again(verified.extensions), verified.extensions)
        let extensions = AuthenticatorExtensions(
            validationCategory: .developerID,
            codeDirectoryHash: [1, 2, 3],
            codeDirectoryHashType: [2]
        )
        try expectEqual(again(extensions), extensions)
        try expectEqual(again(AuthenticatorExtensions.none), .none)
        try expectEqual(again(verified.app.hash), verified.app.hash)
        try expectEqual(again(BuildPolicy.any), .any)
    }

    @Test func `a receipt's fields are read back, with the certificate`() throws {
        let object = try AttestationCase(AppleSamples.year2024).verified().receipt
        let fields = try UnverifiedReceipt(bytes: object).fields
        let read = try again(fields)
        expectEqual(read.certificate.der, fields.certificate.der)
        try expectEqual(encoder.encode(read), encoder.encode(fields))
        expectEqual(read.creationTime, fields.creationTime)
        expectEqual(read.token, fields.token)
    }

    @Test func `a proof can be written, and not be read`() throws {
        let verified = try AttestationCase(AppleSamples.year2026).verified()
        let json = try JSONSerialization.jsonObject(with: encoder.encode(verified))
        let members = try #require(json as? [String: Any])
        #expect(members["key_id"] as? String == AppleSamples.year2026.keyID)
        let details = try #require(members["details"] as? [String: Any])
        #expect(details["platform"] as? String == "iphoneos")
        #expect((verified as Any) is any Encodable)
        #expect(!((verified as Any) is any Decodable))
        #expect(!(VerifiedAssertion.self is any Decodable.Type))
        #expect(!(VerifiedReceipt.self is any Decodable.Type))
    }

    @Test(arguments: [
        #""key""#, #""AAAA""#, "7", #""BFxx*""#,
        // A point of the right length that is not on the curve.
        "\"BAEB" + String(repeating: "AQEB", count: 20) + "AQE=\"",
    ])
    func `text that is no key, key id, time or certificate is not read`(text: String) {
        let data = Data(text.utf8)
        let decoder = JSONDecoder()
        #expect(throws: (any Error).self) { try decoder.decode(P256PublicKey.self, from: data) }
        #expect(throws: (any Error).self) { try decoder.decode(KeyID.self, from: data) }
        #expect(throws: (any Error).self) { try decoder.decode(UnixTime.self, from: data) }
        #expect(throws: (any Error).self) { try decoder.decode(X509Certificate.self, from: data) }
        #expect(throws: (any Error).self) { try decoder.decode(AppIDHash.self, from: data) }
    }

    @Test func `moments go to Date and back`() throws {
        let time = try moment("2026-04-20T10:00:00.25Z")
        expectEqual(UnixTime(time.date), time)
        try expectEqual(again(time), time)
        expectEqual(UnixTime(Date(timeIntervalSince1970: -0.25)).nanoseconds, 750_000_000)
        expectEqual(UnixTime(Date(timeIntervalSince1970: -0.25)).seconds, -1)
        expectEqual(UnixTime(.distantFuture).iso8601, "4001-01-01T00:00:00Z")
        expectEqual(UnixTime(Date(timeIntervalSince1970: .infinity)).seconds, .max)
        expectEqual(UnixTime(Date(timeIntervalSince1970: -.infinity)).seconds, .min)
        expectEqual(UnixTime(Date(timeIntervalSince1970: .nan)).seconds, .min)
    }

    @Test func `objects and hashes go in as Data`() throws {
        let sample = AppleSamples.year2024
        let genuine = try AttestationCase(sample)
        let object = Data(genuine.object)
        let verified = try UnverifiedAttestation(bytes: object).verified(
            clientDataHash: Data(sample.clientData.utf8),
            keyID: genuine.keyID,
            apps: [genuine.app],
            roots: [AppleRoots.appAttestation],
            at: genuine.time
        )
        expectEqual(P256PublicKey(x963: Data(verified.publicKey.x963)), verified.publicKey)
        // This app hands over the challenge itself; most hash it.
        #expect(throws: AttestationRefusal(.nonceMismatch, "")) {
            try UnverifiedAttestation(bytes: object).verified(
                challenge: Data(sample.clientData.utf8),
                keyID: genuine.keyID,
                apps: [genuine.app],
                roots: [AppleRoots.appAttestation],
                at: genuine.time
            )
        }
        try expectEqual(UnverifiedReceipt(bytes: Data(verified.receipt)).fields.appID, sample.appID)
        try expectEqual(
            X509Certificate(der: Data(AppleRoots.rootG3.der)).pem,
            AppleRoots.rootG3.pem
        )
        expectEqual(AppIDHash(bytes: Data(verified.app.hash.bytes)), verified.app.hash)
        expectEqual(AppIDHash(bytes: Data([1])), nil)
    }
}
