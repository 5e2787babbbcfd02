internal import COpenSSL
public import Signatures

extension SignedMessage {
    /// The attributes in the signer's entry.
    public enum SignedAttributes: Sendable {
        /// Nothing, as in Apple's receipts since the end of 2020.
        case none
        /// Attributes, although the signature is over the bare content, as in Apple's receipts of
        /// August to October 2020.
        case unsigned
    }

    /// A message as Apple's receipt service makes them: BER with indefinite lengths, ECDSA with
    /// SHA-256 over the content, the signer's certificate and the others inside. The content may
    /// not be empty: OpenSSL does not write such a message.
    public static func signed(
        _ content: [UInt8],
        by key: ECPrivateKey,
        signer: X509Certificate,
        others: [X509Certificate],
        attributes: SignedAttributes = .none
    ) -> [UInt8] {
        switch attributes {
        case .none:
            return encoded(
                content,
                by: key,
                signer: signer,
                others: others,
                attributeFlag: CMS_NOATTR
            )
        case .unsigned:
            let message = encoded(
                content,
                by: key,
                signer: signer,
                others: others,
                attributeFlag: 0
            )
            return replacingSignature(in: message, by: key)
        }
    }

    /// Replaces the signature over the attributes by one over the bare content.
    private static func replacingSignature(in message: [UInt8], by key: ECPrivateKey) -> [UInt8] {
        var replaced = message
        do throws(Failure) {
            let parsed = try SignedMessage(ber: message.span)
            let digest = SHA256.digest(parsed.content.span).bytes
            let starts = stride(from: message.count - parsed.signature.count, through: 0, by: -1)
            for start in starts where message[start...].starts(with: parsed.signature) {
                // DER writes a signature in 70 to 72 bytes. Every second one has the length of the
                // replaced one, so no length around it changes.
                for _ in 0..<1_000 {
                    let signature = key.signature(overDigest: digest.span)
                    guard signature.count == parsed.signature.count else { continue }
                    replaced.replaceSubrange(start..<(start + signature.count), with: signature)
                    return replaced
                }
            }
        } catch {
            fail()
        }
        fail()
    }

    private static func encoded(
        _ content: [UInt8],
        by key: ECPrivateKey,
        signer: X509Certificate,
        others: [X509Certificate],
        attributeFlag: Int32
    ) -> [UInt8] {
        // With CMS_STREAM, the content is left out until it is written, in chunks of indefinite
        // length.
        let signer = OpenSSLX509(signer)
        let others = others.map(OpenSSLX509.init)
        let flags = UInt32(CMS_BINARY | attributeFlag | CMS_NOSMIMECAP | CMS_STREAM)
        guard
            let message = CMS_sign(nil, nil, nil, nil, flags | UInt32(CMS_PARTIAL)),
            CMS_add1_signer(message, signer.pointer, key.envelope, EVP_sha256(), flags) != nil
        else { fail() }
        defer { CMS_ContentInfo_free(message) }
        for other in others {
            guard CMS_add1_cert(message, other.pointer) == 1 else { fail() }
        }
        guard let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else { fail() }
        defer {
            BIO_free(input)
            BIO_free(output)
        }
        // An end of input, where a memory BIO would say "try again".
        _ = copenssl_bio_set_mem_eof_return(input, 0)
        guard BIO_write(input, content, Int32(content.count)) == content.count,
            i2d_CMS_bio_stream(output, message, input, Int32(bitPattern: flags)) == 1
        else { fail() }
        return PEM.bytes(of: output)
    }

    private static func fail() -> Never {
        preconditionFailure("SignedMessage: OpenSSL cannot sign")
    }
}
