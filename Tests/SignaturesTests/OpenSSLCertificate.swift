import COpenSSL
import Encodings

@testable import Signatures

/// A certificate as OpenSSL reads it, to compare with.
final class OpenSSLCertificate {
    let validity: (notBefore: UnixTime, notAfter: UnixTime)

    private let pointer: OpaquePointer

    init?(der: Span<UInt8>) {
        let pointer = der.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var next = buffer.baseAddress
            // d2i_X509 reads at most `count` bytes, and moves `next` to the first that is left.
            guard let pointer = d2i_X509(nil, &next, buffer.count) else { return nil }
            guard let base = buffer.baseAddress, next == base + buffer.count else {
                X509_free(pointer)
                return nil
            }
            return pointer
        }
        guard let pointer else {
            ERR_clear_error()
            return nil
        }
        guard let notBefore = Self.time(X509_get0_notBefore(pointer)),
            let notAfter = Self.time(X509_get0_notAfter(pointer))
        else {
            X509_free(pointer)
            return nil
        }
        self.pointer = pointer
        validity = (notBefore, notAfter)
    }

    deinit {
        X509_free(pointer)
    }

    var p256PublicKey: P256PublicKey? {
        guard let key = X509_get0_pubkey(pointer) else {
            ERR_clear_error()
            return nil
        }
        var name = [CChar](repeating: 0, count: 64)
        var count = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1,
            name.starts(with: "prime256v1".utf8.map { CChar($0) } + [0]),
            let bits = X509_get0_pubkey_bitstr(pointer)
        else {
            ERR_clear_error()
            return nil
        }
        // The bit string belongs to the certificate; its bytes are copied.
        let bytes = Array(
            UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(bits),
                count: Int(bits.pointee.length)
            )
        )
        return P256PublicKey(x963: bytes)
    }

    func extensionBytes(_ oid: OID) -> [UInt8]? {
        var found: [UInt8]?
        for index in 0..<X509_get_ext_count(pointer) {
            guard let entry = X509_get_ext(pointer, index),
                let object = X509_EXTENSION_get_object(entry), let data = OBJ_get0_data(object),
                UnsafeBufferPointer(start: data, count: OBJ_length(object))
                    .elementsEqual(oid.content)
            else { continue }
            guard found == nil, let value = X509_EXTENSION_get_data(entry) else { return nil }
            // The value belongs to the certificate; its bytes are copied.
            found = Array(
                UnsafeBufferPointer(
                    start: ASN1_STRING_get0_data(value),
                    count: Int(ASN1_STRING_length(value))
                )
            )
        }
        return found
    }

    func subject(_ field: OID) -> String? {
        guard let name = X509_get_subject_name(pointer) else { return nil }
        let nid =
            switch field {
            case .commonName: NID_commonName
            case .organization: NID_organizationName
            default: NID_organizationalUnitName
            }
        let index = X509_NAME_get_index_by_NID(name, nid, -1)
        guard index >= 0, let entry = X509_NAME_get_entry(name, index),
            let value = X509_NAME_ENTRY_get_data(entry)
        else { return nil }
        var text: UnsafeMutablePointer<UInt8>?
        let count = ASN1_STRING_to_UTF8(&text, value)
        guard count >= 0, let text else {
            ERR_clear_error()
            return nil
        }
        // OpenSSL allocated `count` bytes at `text` for us to free.
        defer { CRYPTO_free(text, nil, 0) }
        return String(
            decoding: UnsafeBufferPointer(start: text, count: Int(count)),
            as: UTF8.self
        )
    }

    func isValidSignature(_ signature: [UInt8], digest: SHA256Digest) -> Bool? {
        guard let key = X509_get0_pubkey(pointer), EVP_PKEY_get_base_id(key) == EVP_PKEY_EC,
            let context = EVP_PKEY_CTX_new(key, nil)
        else {
            ERR_clear_error()
            return nil
        }
        defer {
            EVP_PKEY_CTX_free(context)
            ERR_clear_error()
        }
        let bytes = digest.array
        return EVP_PKEY_verify_init(context) == 1
            && EVP_PKEY_verify(context, signature, signature.count, bytes, bytes.count) == 1
    }

    private static func time(_ time: UnsafePointer<ASN1_TIME>?) -> UnixTime? {
        guard let time, let data = ASN1_STRING_get0_data(time) else { return nil }
        // The string belongs to the certificate; its bytes are copied.
        let text = ContiguousArray(
            UnsafeBufferPointer(start: data, count: Int(ASN1_STRING_length(time)))
        )
        return UnixTime(
            certificateTime: text.span,
            isTwoDigitYear: ASN1_STRING_type(time) == V_ASN1_UTCTIME
        )
    }
}

extension OpenSSLCertificate {
    /// The certificates of a path, in DER, whatever their dates; `nil` where there is none.
    func path(
        through intermediates: [OpenSSLCertificate],
        to anchors: [OpenSSLCertificate]
    ) -> [[UInt8]]? {
        guard let context = X509_STORE_CTX_new(), let trusted = Self.stack(of: anchors),
            let untrusted = Self.stack(of: intermediates)
        else { preconditionFailure("X509Certificate: no memory") }
        defer {
            // The stacks hold no references: the arrays keep the certificates alive until here.
            OPENSSL_sk_free(trusted)
            OPENSSL_sk_free(untrusted)
            X509_STORE_CTX_free(context)
            ERR_clear_error()
        }
        guard X509_STORE_CTX_init(context, nil, pointer, untrusted) == 1 else {
            preconditionFailure("X509Certificate: no memory")
        }
        X509_STORE_CTX_set0_trusted_stack(context, trusted)
        X509_STORE_CTX_set_flags(context, UInt(X509_V_FLAG_NO_CHECK_TIME))
        guard X509_verify_cert(context) == 1, let chain = X509_STORE_CTX_get0_chain(context) else {
            return nil
        }
        return (0..<OPENSSL_sk_num(chain)).compactMap { index in
            OPENSSL_sk_value(chain, index).flatMap { OpenSSLMessage.der(of: OpaquePointer($0)) }
        }
    }

    private static func stack(of certificates: [OpenSSLCertificate]) -> OpaquePointer? {
        guard let stack = OPENSSL_sk_new_null() else { return nil }
        for certificate in certificates {
            guard OPENSSL_sk_push(stack, UnsafeRawPointer(certificate.pointer)) > 0 else {
                OPENSSL_sk_free(stack)
                return nil
            }
        }
        return stack
    }
}

/// A CMS SignedData as OpenSSL reads it, to compare with.
enum OpenSSLMessage {
    static func parts(ber bytes: Span<UInt8>) -> MessageSummary? {
        defer { ERR_clear_error() }
        let message = bytes.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var next = buffer.baseAddress
            // d2i reads at most `count` bytes from `next`, and moves it after the bytes that it
            // read.
            guard let message = d2i_CMS_ContentInfo(nil, &next, buffer.count) else {
                return nil
            }
            guard let base = buffer.baseAddress, next == base + buffer.count else {
                CMS_ContentInfo_free(message)
                return nil
            }
            return message
        }
        guard let message else { return nil }
        defer { CMS_ContentInfo_free(message) }

        guard OBJ_obj2nid(CMS_get0_type(message)) == NID_pkcs7_signed,
            OBJ_obj2nid(CMS_get0_eContentType(message)) == NID_pkcs7_data,
            let content = CMS_get0_content(message)?.pointee,
            let signers = CMS_get0_SignerInfos(message), OPENSSL_sk_num(signers) == 1,
            let info = OPENSSL_sk_value(signers, 0).map({ OpaquePointer($0) }),
            let signature = CMS_SignerInfo_get0_signature(info),
            let (certificates, signer) = certificates(of: message, signedBy: info)
        else { return nil }
        var digestAlgorithm: UnsafeMutablePointer<X509_ALGOR>?
        var signatureAlgorithm: UnsafeMutablePointer<X509_ALGOR>?
        CMS_SignerInfo_get0_algs(info, nil, nil, &digestAlgorithm, &signatureAlgorithm)
        return MessageSummary(
            content: Self.bytes(of: content),
            signature: Self.bytes(of: signature),
            certificates: certificates,
            signer: signer,
            isECDSAWithSHA256: nid(digestAlgorithm) == NID_sha256
                && nid(signatureAlgorithm) == NID_ecdsa_with_SHA256
        )
    }

    private static func certificates(
        of message: OpaquePointer,
        signedBy info: OpaquePointer
    ) -> ([[UInt8]], signer: Int?)? {
        guard let stack = CMS_get1_certs(message) else { return nil }
        defer {
            // CMS_get1_certs took a reference of each certificate.
            for index in 0..<OPENSSL_sk_num(stack) {
                X509_free(OPENSSL_sk_value(stack, index).map { OpaquePointer($0) })
            }
            OPENSSL_sk_free(stack)
        }
        let count = OPENSSL_sk_num(stack)
        guard count <= SignedMessage.certificatesMax else { return nil }
        var certificates: [[UInt8]] = []
        var signer: Int?
        for index in 0..<count {
            guard let pointer = OPENSSL_sk_value(stack, index).map({ OpaquePointer($0) }),
                let der = der(of: pointer)
            else { return nil }
            if signer == nil, CMS_SignerInfo_cert_cmp(info, pointer) == 0 {
                signer = Int(index)
            }
            certificates.append(der)
        }
        return (certificates, signer)
    }

    static func der(of certificate: OpaquePointer) -> [UInt8]? {
        var start: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(certificate, &start)
        guard count >= 0, let start else { return nil }
        // OpenSSL allocated `count` bytes at `start` for us to free.
        defer { CRYPTO_free(start, nil, 0) }
        return Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }

    private static func bytes(of string: UnsafePointer<ASN1_OCTET_STRING>) -> [UInt8] {
        // The string belongs to the message, which is alive; its bytes are copied.
        Array(
            UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(string),
                count: Int(ASN1_STRING_length(string))
            )
        )
    }

    private static func bytes(of string: UnsafeMutablePointer<ASN1_OCTET_STRING>) -> [UInt8] {
        bytes(of: UnsafePointer(string))
    }

    private static func nid(_ algorithm: UnsafeMutablePointer<X509_ALGOR>?) -> Int32 {
        var object: OpaquePointer?
        X509_ALGOR_get0(&object, nil, nil, algorithm)
        return OBJ_obj2nid(object)
    }
}

/// A message in its parts.
struct MessageSummary: Equatable {
    let content: [UInt8]
    let signature: [UInt8]
    /// The certificates in DER.
    let certificates: [[UInt8]]
    /// The index of the first certificate that the signer's entry names.
    let signer: Int?
    let isECDSAWithSHA256: Bool
}
