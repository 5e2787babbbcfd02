import Encodings
import Expectations
import Testing

@Suite struct Base64Tests {
    // RFC 4648 §10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
    func `the vectors of RFC 4648 go both ways, padded or not`(plain: String, text: String) {
        expectEqual(Base64.text(Array(plain.utf8)), text)
        expectEqual(Base64.decode(text), Array(plain.utf8))
        expectEqual(Base64.decode(text.filter { $0 != "=" }), Array(plain.utf8))
    }

    @Test func `both alphabets are read, and each is written by its own name`() {
        let bytes: [UInt8] = [0xFB, 0xEF, 0xFF]
        expectEqual(Base64.text(bytes), "++//")
        expectEqual(String(decoding: Base64.encodeURL(bytes), as: UTF8.self), "--__")
        expectEqual(Base64.decode("++//"), bytes)
        expectEqual(Base64.decode("--__"), bytes)
    }

    @Test(arguments: [
        "A", "AAAAA", "=", "====", "A===", "AA=", "AAA==", "AAAA=", "AAAA==", "AA=A", "Zm9v\n",
        " Zm9v",
        "Zm9v YmFy", "Zh==", "Zm9=", "Zm9v*", "Zm9vé",
    ])
    func `what no encoder writes is not base64`(text: String) {
        expectEqual(Base64.decode(text), nil)
    }

    @Test func `every byte and every length comes back`() {
        let all = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
        for count in 0...300 {
            let bytes = Array(all.prefix(count))
            expectEqual(Base64.decode(Base64.encode(bytes).span), bytes)
            expectEqual(Base64.decode(Base64.encodeURL(bytes).span), bytes)
        }
    }
}
