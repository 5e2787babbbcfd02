import Cryptography
import Expectations
import Testing

@Suite struct SignedMessageTests {
    private let key = ECPrivateKey(generating: .p256)

    private func certificate(_ key: ECPrivateKey) -> X509Certificate {
        CertificateBuilder(
            subject: .init(commonName: "Signer"),
            serial: 9,
            validity: UnixTime(seconds: 0)...UnixTime(seconds: 4_000_000_000),
            isAuthority: true
        ).selfSigned(by: key)
    }

    private func failure(_ bytes: [UInt8]) -> SignedMessage.Failure.Reason? {
        do throws(SignedMessage.Failure) {
            _ = try SignedMessage(ber: bytes.span).verifiedSigner()
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func `content of any length comes back with its signer`() throws {
        let signer = certificate(key)
        for count in [1, 999, 1_000, 1_001, 5_000] {
            let content = [UInt8](repeating: 7, count: count)
            let bytes = SignedMessage.signed(content, by: key, signer: signer, others: [])
            let message = try SignedMessage(ber: bytes.span)
            expectEqual(message.content, content)
            try expectEqual(message.verifiedSigner().der, signer.der)
        }
    }

    @Test func `a message signed by another key than the certificate's is refused`() {
        let bytes = SignedMessage.signed([1, 2, 3], by: key, signer: certificate(key), others: [])
        expectEqual(failure(bytes), nil)
        // Same issuer name and serial number, another key: put in place of the right certificate by
        // its bytes.
        let other = certificate(ECPrivateKey(generating: .p256))
        let right = certificate(key)
        var changed = bytes
        if let place = changed.firstRange(of: right.x963Bytes) {
            changed.replaceSubrange(place, with: other.x963Bytes)
        }
        expectEqual(failure(changed), .signature)
    }

    @Test func `no truncation is a message, and no flipped bit traps`() {
        let bytes = SignedMessage.signed([1, 2, 3], by: key, signer: certificate(key), others: [])
        for count in 0..<bytes.count { expectEqual(failure(Array(bytes[..<count])), .malformed) }
        expectEqual(failure(bytes + [0]), .malformed)
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1 << UInt8(index % 8)
            _ = failure(changed)
        }
        let long = [UInt8](repeating: 0x30, count: SignedMessage.bytesMax + 1)
        expectEqual(failure(long), .malformed)
        // Nested indefinite lengths, as deep as they can be sent.
        expectEqual(failure([UInt8](repeating: 0x30, count: 1)), .malformed)
        let nested = [UInt8]((0..<20_000).map { $0 % 2 == 0 ? 0x24 : 0x80 })
        expectEqual(failure(nested), .malformed)
    }
}

extension X509Certificate {
    fileprivate var x963Bytes: [UInt8] { p256PublicKey?.x963 ?? [] }
}
