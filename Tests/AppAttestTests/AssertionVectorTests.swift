import Cryptography
import Encodings
import Expectations
import TestSupport
import Testing

@testable import AppAttest

@Suite
struct AssertionVectorTests {
    private func verify(
        _ vector: AssertionVector,
        object: [UInt8]? = nil,
        hash: [UInt8]? = nil,
        key: P256PublicKey? = nil,
        appID: String? = nil
    ) throws -> VerifiedAssertion {
        let clientDataHash = try hash ?? bytes(vector.clientDataHashB64)
        return try UnverifiedAssertion(bytes: object ?? bytes(vector.assertionB64)).verified(
            clientDataHash: clientDataHash.span,
            key: key ?? publicKey(vector.publicKeyX963B64),
            app: AppIDHash(appID: appID ?? vector.appId)
        )
    }

    @Test(arguments: SharedVectors.assertions)
    func `a genuine assertion is accepted once`(vector: AssertionVector) throws {
        let verified = try verify(vector)
        expectEqual(verified.counter.rawValue, vector.counter)
        try verified.checkCounter(after: SignCounter(rawValue: vector.counter - 1))
        expectEqual(
            AssertionRefusal.reason { try verified.checkCounter(after: verified.counter) },
            .counterReplayed
        )
        let higher = SignCounter(rawValue: vector.counter + 1)
        expectEqual(
            AssertionRefusal.reason { try verified.checkCounter(after: higher) },
            .counterReplayed
        )
        let extensions = vector.authenticatorDataExtensions
        expectEqual(verified.extensions.bundleVersion, extensions?["apple_bundle_version_01"])
        let category = extensions?["apple_validation_category_01"].flatMap { Hex.decode($0) }
        expectEqual(
            verified.extensions.validationCategory?.rawValue,
            category.map { UInt32($0[0]) }
        )
    }

    @Test(arguments: SharedVectors.assertions)
    func `the hash is that of the client data, and the key id that of the key`(
        vector: AssertionVector
    ) throws {
        #expect(
            SHA256.digest(of: try bytes(vector.clientDataB64)).array
                == (try bytes(vector.clientDataHashB64))
        )
        expectEqual(KeyID(of: try publicKey(vector.publicKeyX963B64)).base64, vector.keyId)
    }

    @Test(arguments: SharedVectors.assertions)
    func `another key, other client data or another app is refused`(
        vector: AssertionVector
    ) throws {
        let other = P256PrivateKey(seed: [1].span).publicKey
        expectEqual(
            AssertionRefusal.reason { _ = try verify(vector, key: other) },
            .signatureMismatch
        )
        var hash = try bytes(vector.clientDataHashB64)
        hash[31] ^= 0x80
        expectEqual(
            AssertionRefusal.reason { _ = try verify(vector, hash: hash) },
            .signatureMismatch
        )
        expectEqual(
            AssertionRefusal.reason { _ = try verify(vector, hash: []) },
            .signatureMismatch
        )
        expectEqual(AssertionRefusal.reason { _ = try verify(vector, appID: "A.b") }, .appMismatch)
    }

    @Test(arguments: SharedVectors.assertions)
    func `the keys stand in either order and a tree finds the same parts`(
        vector: AssertionVector
    ) throws {
        let object = try bytes(vector.assertionB64)
        let budget = CBORBudget(bytesMax: 1024, depthMax: 2, itemsMax: 8)
        guard case .map(let pairs) = try CBORValue(decoding: object, budget: budget) else {
            throw BrokenVector()
        }
        expectEqual(CBORValue.map(pairs).encoded, object)
        _ = try verify(vector, object: CBORValue.map(pairs.reversed()).encoded)
        for bad in [
            pairs + [pairs[0]], [pairs[0]], [pairs[0], pairs[0]], [],
            pairs + [.init(.text("x"), .null)],
        ] {
            expectEqual(
                AssertionRefusal.reason {
                    _ = try verify(vector, object: CBORValue.map(bad).encoded)
                },
                .malformed
            )
        }
    }

    @Test(arguments: SharedVectors.assertions)
    func `no truncation and no flipped bit is accepted, and none traps`(
        vector: AssertionVector
    ) throws {
        var object = try bytes(vector.assertionB64)
        for count in 0..<object.count {
            let part = Array(object[..<count])
            expectEqual(
                AssertionRefusal.reason { _ = try verify(vector, object: part) },
                .malformed
            )
        }
        expectEqual(
            AssertionRefusal.reason { _ = try verify(vector, object: object + [0]) },
            .malformed
        )
        for index in object.indices {
            for bit in 0..<8 {
                object[index] ^= 1 << UInt8(bit)
                #expect(AssertionRefusal.reason { _ = try verify(vector, object: object) } != nil)
                object[index] ^= 1 << UInt8(bit)
            }
        }
    }

    @Test func `some genuine signatures have an s above half the order`() throws {
        let high = try SharedVectors.assertions.count { vector in
            let object = try UnverifiedAssertion(bytes: try bytes(vector.assertionB64))
            let signature = Array(object.bytes[object.signature])
            // INTEGER s of 33 bytes: its first bit is set.
            return signature[4 + Int(signature[3]) + 1] == 33
        }
        #expect(high > 0)
    }
}
