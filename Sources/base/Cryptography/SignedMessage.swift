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
