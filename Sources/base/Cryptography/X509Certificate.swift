internal import ByteCoding
internal import COpenSSL

/// An X.509 certificate (RFC 5280), read and not judged: a path has to be built before anything in
/// it is believed.
///
/// `@unchecked Sendable`: its X509 is not changed after the initialiser. What OpenSSL
/// works out lazily (the extension flags) it guards with a lock of its own.
public final class X509Certificate: @unchecked Sendable {
    /// The longest certificate that is read. App Attest's have 0.5…1.1 KiB.
    public static let bytesMax = 16 * 1024

    /// The whole certificate in DER.
    public let der: [UInt8]
    /// The first moment of validity.
    public let notBefore: UnixTime
    /// The last second of validity (RFC 5280 §4.1.2.5: inclusive).
    public let notAfter: UnixTime

    let pointer: OpaquePointer

    /// Reads one certificate in DER with nothing after it. Throws `.malformed`.
    public convenience init(der: Span<UInt8>) throws(X509CertificateError) {
        guard der.count <= Self.bytesMax else {
            throw X509CertificateError(.malformed, "\(der.count) bytes are too many")
        }
        let pointer = der.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var next = buffer.baseAddress
            // d2i_X509 reads at most `count` bytes from `next` and moves it behind what it read.
            guard let pointer = d2i_X509(nil, &next, buffer.count) else { return nil }
            guard let base = buffer.baseAddress, next == base + buffer.count else {
                X509_free(pointer)
                return nil
            }
            return pointer
        }
        guard let pointer else {
            ERR_clear_error()
            throw X509CertificateError(.malformed, "not one DER certificate")
        }
        try self.init(owning: pointer)
    }

    /// Reads one certificate in DER with nothing after it. Throws `.malformed`.
    public convenience init(der: [UInt8]) throws(X509CertificateError) {
        try self.init(der: der.span)
    }

    /// Reads one certificate in DER, from `Data` or any other bytes. Throws `.malformed`.
    public convenience init(der: some Sequence<UInt8>) throws(X509CertificateError) {
        try self.init(der: Array(der))
    }

    /// Takes over one reference of an X509.
    init(owning pointer: OpaquePointer) throws(X509CertificateError) {
        guard let der = DER.bytes({ i2d_X509(pointer, $0) }),
            let notBefore = Self.time(X509_get0_notBefore(pointer)),
            let notAfter = Self.time(X509_get0_notAfter(pointer))
        else {
            X509_free(pointer)
            ERR_clear_error()
            throw X509CertificateError(.malformed, "times that RFC 5280 does not allow")
        }
        self.pointer = pointer
        self.der = der
        self.notBefore = notBefore
        self.notAfter = notAfter
    }

    deinit {
        X509_free(pointer)
    }

    /// SHA-256 of the DER: how authorities publish what to pin.
    package var fingerprint: SHA256Digest {
        SHA256.digest(of: der)
    }

    /// The subject's key; `nil` when it is not an uncompressed point on P-256.
    public var p256PublicKey: P256PublicKey? {
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
            UnsafeBufferPointer(start: ASN1_STRING_get0_data(bits), count: Int(bits.pointee.length))
        )
        return P256PublicKey(x963: bytes.span)
    }

    /// The bytes inside an extension's OCTET STRING; `nil` unless the certificate has the extension
    /// exactly once.
    package func extensionBytes(_ oid: OID) -> [UInt8]? {
        let index = oid.withObject { X509_get_ext_by_OBJ(pointer, $0, -1) }
        guard index >= 0, oid.withObject({ X509_get_ext_by_OBJ(pointer, $0, index) }) < 0,
            let found = X509_get_ext(pointer, index), let value = X509_EXTENSION_get_data(found)
        else { return nil }
        // The value belongs to the certificate; its bytes are copied.
        return Array(
            UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(value),
                count: Int(ASN1_STRING_length(value))
            )
        )
    }

    /// The attributes of a subject that certificates of App Attest have.
    package enum SubjectField: Sendable {
        /// CN.
        case commonName
        /// O.
        case organization
        /// OU.
        case organizationalUnit

        var nid: Int32 {
            switch self {
            case .commonName: NID_commonName
            case .organization: NID_organizationName
            case .organizationalUnit: NID_organizationalUnitName
            }
        }
    }

    /// The first value of an attribute of the subject; `nil` when there is none.
    package func subject(_ field: SubjectField) -> String? {
        guard let name = X509_get_subject_name(pointer) else { return nil }
        let index = X509_NAME_get_index_by_NID(name, field.nid, -1)
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

    private static func time(_ time: UnsafePointer<ASN1_TIME>?) -> UnixTime? {
        guard let time, let data = ASN1_STRING_get0_data(time) else { return nil }
        // The string belongs to the certificate, which outlives this call.
        let text = UnsafeBufferPointer(start: data, count: Int(ASN1_STRING_length(time)))
        return UnixTime(
            certificateTime: text.span,
            isTwoDigitYear: ASN1_STRING_type(time) == V_ASN1_UTCTIME
        )
    }
}

/// Bytes that OpenSSL encodes.
enum DER {
    /// What an `i2d` function writes; `nil` when it fails.
    static func bytes(
        _ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    ) -> [UInt8]? {
        var start: UnsafeMutablePointer<UInt8>?
        let count = encode(&start)
        guard count >= 0, let start else { return nil }
        // OpenSSL allocated `count` bytes at `start` for us to free.
        defer { CRYPTO_free(start, nil, 0) }
        return Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }
}

extension X509Certificate {
    /// The longest PEM file that is read.
    package static let pemOctetsMax = 256 * 1024

    /// The certificates of a PEM text, in order. Throws `.malformed` when there is none, or more
    /// than ``pathCandidatesMax``, or one that cannot be read.
    public static func certificates(pem: String) throws(X509CertificateError) -> [X509Certificate] {
        var text = Array(pem.utf8)
        guard text.count <= pemOctetsMax else {
            throw X509CertificateError(.malformed, "\(text.count) bytes of PEM are too many")
        }
        let pointers = text.withUnsafeMutableBytes { buffer -> [OpaquePointer] in
            guard let bio = BIO_new_mem_buf(buffer.baseAddress, Int32(buffer.count)) else {
                return []
            }
            defer { BIO_free(bio) }
            var pointers: [OpaquePointer] = []
            while let pointer = PEM_read_bio_X509(bio, nil, nil, nil) { pointers.append(pointer) }
            return pointers
        }
        // The reader ends with "no start line", which is in the queue whether or not it is an
        // error.
        ERR_clear_error()
        var certificates: [X509Certificate] = []
        var failure: X509CertificateError?
        for pointer in pointers {
            do throws(X509CertificateError) {
                certificates.append(try X509Certificate(owning: pointer))
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        let begins = pem.split(separator: "\n").count {
            $0.hasPrefix("-----BEGIN CERTIFICATE-----")
        }
        guard !certificates.isEmpty, certificates.count == begins,
            certificates.count <= pathCandidatesMax
        else {
            throw X509CertificateError(
                .malformed,
                "\(certificates.count) of \(begins) PEM certificates"
            )
        }
        return certificates
    }

    /// The certificate in PEM.
    public var pem: String {
        PEM.text { PEM_write_bio_X509($0, pointer) == 1 }
    }
}

extension X509Certificate: Codable {
    /// Reads base64 of the DER.
    public convenience init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let der = Base64.decode(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not base64 of a certificate"
            )
        }
        try self.init(der: der)
    }

    /// Writes base64 of the DER.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Base64.text(der))
    }
}

/// Why a certificate, or a path of certificates, is not good.
public struct X509CertificateError: Error, Sendable, Equatable {
    /// What is wrong, for code.
    @nonexhaustive
    public enum Reason: String, Sendable, CaseIterable {
        /// Not one DER certificate, or longer than ``X509Certificate/bytesMax``.
        case malformed
        /// No path of valid signatures leads to one of the anchors.
        case untrusted
        /// The path is right, and a certificate of it is no longer valid.
        case expired
        /// The path is right, and a certificate of it is not valid yet.
        case notYetValid
    }

    /// What is wrong, for code.
    public let reason: Reason
    /// What is wrong, for people. Not compared.
    public let detail: String

    init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    /// Whether two errors have the same reason.
    public static func == (left: Self, right: Self) -> Bool {
        left.reason == right.reason
    }
}
