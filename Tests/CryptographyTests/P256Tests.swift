import Cryptography
import Encodings
import Expectations
import Testing

@Suite struct P256Tests {
    // RFC 6979, A.2.5: key and SHA-256 signature of "sample".
    private let scalar = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721"
    private let point =
        "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
        + "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"
    private let r = "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
    private let s = "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"

    private func key(_ hex: String) throws -> P256PublicKey {
        let bytes = try #require(Hex.decode(hex))
        return try #require(P256PublicKey(x963: bytes))
    }

    private func isValid(_ signature: [UInt8], _ message: [UInt8], _ key: P256PublicKey) -> Bool {
        key.isValidSignature(signature.span, message: message.span)
    }

    private func privateKey(_ scalar: [UInt8]) -> P256PrivateKey? {
        P256PrivateKey(scalar: scalar.span)
    }

    private func signature(_ r: String, _ s: String) throws -> [UInt8] {
        try #require(Hex.decode("3046022100" + r + "022100" + s))
    }

    @Test func `the signature of RFC 6979 verifies, as DER in one form only`() throws {
        let key = try key(point)
        let message = Array("sample".utf8)
        let good = try signature(r, s)
        #expect(isValid(good, message, key))
        #expect(!isValid(good + [0], message, key))
        #expect(!isValid([], message, key))
        for count in 0..<good.count { #expect(!isValid(Array(good[..<count]), message, key)) }
        for index in good.indices {
            for bit in 0..<8 {
                var bad = good
                bad[index] ^= 1 << UInt8(bit)
                #expect(!isValid(bad, message, key))
            }
        }
        let other = Array("Sample".utf8)
        #expect(!isValid(good, other, key))
    }

    @Test func `numbers of a signature are minimal, positive and below the order`() throws {
        let key = try key(point)
        let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"
        let message = Array("sample".utf8)
        let bad = [
            "3006020100020100", "3006020101020101", "30080202000102020001", "3006020181020101",
            "3046022100" + order + "022100" + s, "3046022100" + r + "022100" + order,
            "308146022100" + r + "022100" + s, "3146022100" + r + "022100" + s,
            "304702220000" + r + "022100" + s,
        ]
        for hex in bad {
            let bytes = try #require(Hex.decode(hex))
            #expect(!isValid(bytes, message, key))
        }
    }

    @Test func `either s of a signature is valid`() throws {
        // n − s of the signature above, below half the order.
        let low = "0834e36ad29a83bf2bc9385e491d6099c8fdf9d1ed67aa7ea5f51f93782857a9"
        let key = try key(point)
        let message = Array("sample".utf8)
        let bytes = try #require(Hex.decode("3045022100" + r + "0220" + low))
        #expect(isValid(bytes, message, key))
    }

    @Test func `a point is uncompressed, of 65 bytes and on the curve`() throws {
        let bytes = try #require(Hex.decode(point))
        let key = try #require(P256PublicKey(x963: bytes))
        expectEqual(key.x963, bytes)
        expectEqual(P256PublicKey(raw: Array(bytes.dropFirst()).span), key)
        expectEqual(P256PublicKey(raw: bytes.span), nil)
        expectEqual(P256PublicKey(x963: Array(bytes.dropLast())), nil)
        expectEqual(P256PublicKey(x963: bytes + [0]), nil)
        expectEqual(P256PublicKey(x963: [2] + bytes[1..<33]), nil)
        expectEqual(P256PublicKey(x963: [6] + bytes[1...]), nil)
        expectEqual(P256PublicKey(x963: [0]), nil)
        for index in 1..<65 {
            var other = bytes
            other[index] ^= 1
            expectEqual(P256PublicKey(x963: other), nil)
        }
        expectEqual(P256PublicKey(x963: [4] + [UInt8](repeating: 0, count: 64)), nil)
        expectEqual(P256PublicKey(x963: [4] + [UInt8](repeating: 0xFF, count: 64)), nil)
    }

    @Test func `a private key is its scalar, and one seed gives one key`() throws {
        let number = try #require(Hex.decode(scalar))
        let key = try #require(privateKey(number))
        expectEqual(Hex.text(key.publicKey.x963), point)
        let message: [UInt8] = [1, 2, 3]
        let signature = key.signature(message: message.span)
        #expect(
            isValid(signature, message, key.publicKey)
        )
        #expect(privateKey([UInt8](repeating: 0, count: 32)) == nil)
        #expect(privateKey([UInt8](repeating: 0xFF, count: 32)) == nil)
        #expect(privateKey([1]) == nil)
        let seed: [UInt8] = [7]
        expectEqual(
            P256PrivateKey(seed: seed.span).publicKey,
            P256PrivateKey(seed: seed.span).publicKey
        )
        #expect(P256PrivateKey().publicKey != P256PrivateKey().publicKey)
    }

    @Test func `a private key goes to PEM and back`() throws {
        for curve in ECPrivateKey.Curve.allCases {
            let key = ECPrivateKey(generating: curve)
            let back = try #require(ECPrivateKey(pem: key.pem))
            expectEqual(back.x963, key.x963)
            expectEqual(back.curve, curve)
        }
        #expect(ECPrivateKey(pem: "") == nil)
        let short = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
        #expect(ECPrivateKey(pem: short) == nil)
    }
}
