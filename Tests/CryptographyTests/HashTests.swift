import Cryptography
import Encodings
import Expectations
import Testing

@Suite struct HashTests {
    // FIPS 180-4 examples.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func `SHA-256 is that of FIPS 180-4, whole and at every cut`(text: String, hex: String) {
        let bytes = Array(text.utf8)
        expectEqual(Hex.text(SHA256.digest(of: bytes).array), hex)
        for cut in 0...bytes.count {
            let first = Array(bytes[..<cut])
            let second = Array(bytes[cut...])
            expectEqual(Hex.text(SHA256.digest(first.span, second.span).array), hex)
            var stream = SHA256.Stream()
            stream.update(first.span)
            _ = stream.digest()
            stream.update(second.span)
            expectEqual(Hex.text(stream.digest().array), hex)
        }
    }

    @Test func `a digest is its 32 bytes and no others`() throws {
        let bytes = (0..<32).map { UInt8($0) * 8 }
        let digest = try #require(SHA256Digest(bytes: bytes))
        expectEqual(digest.array, bytes)
        expectEqual(SHA256Digest(bytes: bytes.dropLast()), nil)
        expectEqual(SHA256Digest(bytes: bytes + [0]), nil)
        expectEqual(digest.isEqual(constantTime: bytes.span), true)
        for index in bytes.indices {
            var other = bytes
            other[index] ^= 1
            expectEqual(digest.isEqual(constantTime: other.span), false)
            #expect(digest != SHA256Digest(bytes: other))
        }
    }

    // RFC 4231: test cases 1, 2, 6 (a key longer than a block).
    @Test(arguments: [
        (
            [UInt8](repeating: 0x0B, count: 20), "Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            Array("Jefe".utf8), "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xAA, count: 131),
            "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ])
    func `HMAC is that of RFC 4231, with a key used again`(key: [UInt8], text: String, hex: String)
    {
        let message = Array(text.utf8)
        let prepared = HMACSHA256.Key(key.span)
        for _ in 0..<2 { expectEqual(Hex.text(prepared.code(message.span).array), hex) }
        let empty: [UInt8] = []
        expectEqual(Hex.text(prepared.code(message.span, empty.span).array), hex)
        let code = prepared.code(message.span).array
        expectEqual(prepared.isValid(code.span, for: message.span), true)
        let short = Array(code.dropLast())
        expectEqual(prepared.isValid(short.span, for: message.span), false)
    }

    @Test func `a drawn key is its own each time`() {
        let (one, other) = (HMACSHA256.Key.random(), HMACSHA256.Key.random())
        let message = Array("message".utf8)
        let code = one.code(message.span).array
        expectEqual(one.isValid(code.span, for: message.span), true)
        expectEqual(other.isValid(code.span, for: message.span), false)
    }

    @Test func `random bytes are as many as asked for, and not the same`() {
        #expect(RandomBytes.make(count: 0).isEmpty)
        expectEqual(RandomBytes.make(count: 33).count, 33)
        #expect(RandomBytes.make(count: 32) != RandomBytes.make(count: 32))
    }
}
