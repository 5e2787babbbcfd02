import Cryptography
import Encodings
import Expectations
import KeyAttestation
import Testing

@Suite struct KeySignatureTests {
    private static let package = "com.example.shop"
    private static let hash = SHA256.digest(of: Array("client data".utf8)).array

    private let key = ECPrivateKey(generating: .p256)

    private func text(_ counter: UInt32) throws -> String {
        let message = try #require(
            UnverifiedKeySignature.message(
                package: Self.package,
                counter: SignCounter(rawValue: counter),
                clientDataHash: Self.hash
            )
        )
        let digest = SHA256.digest(of: message).array
        let signature = key.signature(overDigest: digest.span)
        return "v1.\(counter).\(String(decoding: Base64.encodeURL(signature), as: UTF8.self))"
    }

    private func isValid(
        _ text: String,
        package: String = package,
        hash: [UInt8] = hash,
        after stored: UInt32 = 0
    ) -> Bool {
        guard let signature = UnverifiedKeySignature(Array(text.utf8)),
            let key = P256PublicKey(x963: key.x963)
        else { return false }
        return signature.isValid(
            clientDataHash: hash,
            package: package,
            key: key,
            after: SignCounter(rawValue: stored)
        )
    }

    @Test func `the lines are these`() throws {
        let message = try #require(
            UnverifiedKeySignature.message(
                package: Self.package,
                counter: SignCounter(rawValue: 17),
                clientDataHash: [UInt8](repeating: 0, count: 32)
            )
        )
        expectEqual(
            String(decoding: message, as: UTF8.self),
            """
            portcullis-key-v1\ncom.example.shop\n17\n\
            AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n
            """
        )
    }

    @Test(arguments: [1, 2, 4_294_967_295] as [UInt32])
    func `a signature is good for its counter, package and client data`(
        _ counter: UInt32
    ) throws {
        let text = try text(counter)
        expectEqual(UnverifiedKeySignature(Array(text.utf8))?.counter.rawValue, counter)
        #expect(isValid(text))
        #expect(isValid(text, after: counter - 1))
        #expect(!isValid(text, after: counter))
        #expect(!isValid(text, package: "com.example.shop2"))
        #expect(!isValid(text, hash: [UInt8](repeating: 0, count: 32)))
        #expect(!isValid(text, hash: []))
        let other = text.split(separator: ".")[2]
        #expect(!isValid("v1.\(counter / 2 + 2).\(other)"))
    }

    @Test func `a first counter of 0 is refused`() throws {
        let text = try text(0)
        expectEqual(UnverifiedKeySignature(Array(text.utf8))?.counter, .zero)
        #expect(!isValid(text))
    }

    @Test func `a text has one spelling`() throws {
        let text = try text(7)
        let signature = text.dropFirst(5)
        #expect(isValid(text))
        for other in [
            "v2.7.\(signature)", "V1.7.\(signature)", "v1.07.\(signature)", "v1.+7.\(signature)",
            "v1.-7.\(signature)", "v1..\(signature)", "v1. 7.\(signature)", "v1.7.\(signature)=",
            "v1.7.\(signature).", "v1.7", "v1.7.\(signature) ", " v1.7.\(signature)", "",
            "v1.4294967296.\(signature)", "v1.7.\(signature)\n",
            "v1.7." + String(repeating: "A", count: 200),
        ] {
            #expect(!isValid(other), "\(other)")
        }
        // Base64's other alphabet.
        let plus = signature.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        #expect(String(plus) == signature || !isValid("v1.7." + String(plus)))
    }

    @Test(arguments: ["", "a\nb", "a b", "a\u{0}", "ä", String(repeating: "a", count: 256)])
    func `a package name that could end a line signs nothing`(_ package: String) {
        expectEqual(
            UnverifiedKeySignature.message(
                package: package,
                counter: .zero,
                clientDataHash: Self.hash
            ),
            nil
        )
    }
}
