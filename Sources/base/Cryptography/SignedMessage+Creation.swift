internal import COpenSSL

extension SignedMessage {
    /// A message as Apple's receipt service makes them now: BER with indefinite lengths, ECDSA with
    /// SHA-256 over the content, no signed attributes, the signer's certificate and the others
    /// inside. The content may not be empty: OpenSSL does not write such a message.
    public static func signed(
        _ content: [UInt8],
        by key: ECPrivateKey,
        signer: X509Certificate,
        others: [X509Certificate]
    ) -> [UInt8] {
        // CMS_STREAM leaves the content out until it is written, in chunks of indefinite length.
        let flags = UInt32(CMS_BINARY | CMS_NOATTR | CMS_NOSMIMECAP | CMS_STREAM)
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
        return PEM.octets(of: output)
    }

    private static func fail() -> Never {
        preconditionFailure("SignedMessage: OpenSSL cannot sign")
    }
}
