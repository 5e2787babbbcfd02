internal import COpenSSL

/// A CMS SignedData (RFC 5652) with the content inside it, read and not judged.
///
/// BER is read as well as DER: Apple's receipts have indefinite lengths and their content in
/// constructed OCTET STRINGs of 1000 bytes.
public struct SignedMessage: Sendable {
    /// Why a message is not good.
    public struct Failure: Error, Sendable, Equatable {
        /// What is wrong, for code.
        @nonexhaustive
        public enum Reason: String, Sendable, CaseIterable {
            /// Not one SignedData with content and one signer, or beyond a limit.
            case malformed
            /// The signer's certificate is not in the message.
            case signerMissing
            /// Another algorithm than ECDSA with SHA-256.
            case algorithm
            /// The signature is not one of the signer over the content.
            case signature
        }

        /// What is wrong, for code.
        public let reason: Reason

        init(_ reason: Reason) {
            self.reason = reason
        }
    }

    /// The longest message that is read. Apple's receipts have 3…4 KiB.
    public static let octetsMax = 64 * 1024
    /// The most certificates in a message. Apple's receipts have three.
    public static let certificatesMax = 8

    /// The bytes that are signed.
    public let content: [UInt8]
    /// All certificates of the message, in its order.
    public let certificates: [X509Certificate]
    /// The signature of the only signer, DER.
    public let signature: [UInt8]
    /// Which of the certificates the signer names; `nil` when it is not there.
    public let signer: X509Certificate?
    /// Whether the algorithms are ECDSA with SHA-256.
    private let isECDSAWithSHA256: Bool

    /// Reads one message with nothing after it. Throws `.malformed`.
    public init(ber octets: Span<UInt8>) throws(Failure) {
        defer { ERR_clear_error() }
        guard octets.count <= Self.octetsMax else { throw Failure(.malformed) }
        let message = octets.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var next = buffer.baseAddress
            // d2i reads at most `count` bytes from `next` and moves it behind what it read.
            guard let message = d2i_CMS_ContentInfo(nil, &next, buffer.count) else { return nil }
            guard let base = buffer.baseAddress, next == base + buffer.count else {
                CMS_ContentInfo_free(message)
                return nil
            }
            return message
        }
        guard let message else { throw Failure(.malformed) }
        defer { CMS_ContentInfo_free(message) }

        guard OBJ_obj2nid(CMS_get0_type(message)) == NID_pkcs7_signed,
            OBJ_obj2nid(CMS_get0_eContentType(message)) == NID_pkcs7_data,
            let content = CMS_get0_content(message)?.pointee,
            let signers = CMS_get0_SignerInfos(message), copenssl_signer_count(signers) == 1,
            let info = copenssl_signer_get(signers, 0),
            let signature = CMS_SignerInfo_get0_signature(info)
        else { throw Failure(.malformed) }
        self.content = Self.octets(of: content)
        self.signature = Self.octets(of: signature)

        var digestAlgorithm: UnsafeMutablePointer<X509_ALGOR>?
        var signatureAlgorithm: UnsafeMutablePointer<X509_ALGOR>?
        CMS_SignerInfo_get0_algs(info, nil, nil, &digestAlgorithm, &signatureAlgorithm)
        isECDSAWithSHA256 =
            Self.nid(digestAlgorithm) == NID_sha256
            && Self.nid(signatureAlgorithm) == NID_ecdsa_with_SHA256

        guard let stack = CMS_get1_certs(message) else { throw Failure(.malformed) }
        defer { copenssl_x509_stack_pop_free(stack) }
        let count = copenssl_x509_stack_count(stack)
        guard count <= Self.certificatesMax else { throw Failure(.malformed) }
        var certificates: [X509Certificate] = []
        var signer: X509Certificate?
        for index in 0..<count {
            guard let pointer = copenssl_x509_stack_get(stack, index), X509_up_ref(pointer) == 1
            else { throw Failure(.malformed) }
            let certificate: X509Certificate
            do throws(X509CertificateError) {
                certificate = try X509Certificate(owning: pointer)
            } catch {
                throw Failure(.malformed)
            }
            certificates.append(certificate)
            if signer == nil, CMS_SignerInfo_cert_cmp(info, pointer) == 0 { signer = certificate }
        }
        self.certificates = certificates
        self.signer = signer
    }

    /// Checks that the signature is the signer's, over the content itself, and says who that is.
    ///
    /// RFC 5652 §5.4 hashes the signed attributes where there are any. Apple does not: receipts of
    /// August to October 2020 carry signed attributes and yet are signed over the bare content
    /// (later ones carry none), which is why `openssl cms -verify` refuses them. Attributes are
    /// therefore not looked at, and nothing in them is believed.
    ///
    /// Who the signer is says nothing until ``X509Certificate/path(through:to:at:)`` leads to an
    /// anchor.
    ///
    /// Throws `.signerMissing`, `.algorithm`, `.signature`, in this order.
    public func verifiedSigner() throws(Failure) -> X509Certificate {
        guard let signer else { throw Failure(.signerMissing) }
        guard isECDSAWithSHA256 else { throw Failure(.algorithm) }
        guard let key = X509_get0_pubkey(signer.pointer), EVP_PKEY_get_base_id(key) == EVP_PKEY_EC,
            let context = EVP_PKEY_CTX_new(key, nil)
        else {
            ERR_clear_error()
            throw Failure(.algorithm)
        }
        defer {
            EVP_PKEY_CTX_free(context)
            ERR_clear_error()
        }
        let digest = SHA256.digest(content.span).octets
        guard EVP_PKEY_verify_init(context) == 1,
            EVP_PKEY_verify(context, signature, signature.count, digest, digest.count) == 1
        else { throw Failure(.signature) }
        return signer
    }

    private static func octets(of string: UnsafePointer<ASN1_OCTET_STRING>) -> [UInt8] {
        // The string belongs to the message, which is alive; its bytes are copied.
        Array(
            UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(string),
                count: Int(ASN1_STRING_length(string))
            )
        )
    }

    private static func octets(of string: UnsafeMutablePointer<ASN1_OCTET_STRING>) -> [UInt8] {
        octets(of: UnsafePointer(string))
    }

    private static func nid(_ algorithm: UnsafeMutablePointer<X509_ALGOR>?) -> Int32 {
        var object: OpaquePointer?
        X509_ALGOR_get0(&object, nil, nil, algorithm)
        return OBJ_obj2nid(object)
    }
}

extension SignedMessage {
    /// What the signer's entry says beside the signature.
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
            return encoded(content, by: key, signer, others, CMS_NOATTR)
        case .unsigned:
            let message = encoded(content, by: key, signer, others, 0)
            return replacingSignature(in: message, by: key)
        }
    }

    /// Puts a signature over the bare content in the place of the one over the attributes.
    private static func replacingSignature(
        in message: [UInt8],
        by key: ECPrivateKey
    ) -> [UInt8] {
        var replaced = message
        do throws(Failure) {
            let parsed = try SignedMessage(ber: message.span)
            let digest = SHA256.digest(parsed.content.span).bytes
            let starts = stride(from: message.count - parsed.signature.count, through: 0, by: -1)
            for start in starts where message[start...].starts(with: parsed.signature) {
                // DER writes a signature in 70 to 72 bytes. Each second one has the same number as
                // the one that it replaces, so that no length around it changes.
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
        _ signer: X509Certificate,
        _ others: [X509Certificate],
        _ attributeFlag: Int32
    ) -> [UInt8] {
        // CMS_STREAM leaves the content out until it is written, in chunks of indefinite length.
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
        return PEM.octets(of: output)
    }

    private static func fail() -> Never {
        preconditionFailure("SignedMessage: OpenSSL cannot sign")
    }
}
