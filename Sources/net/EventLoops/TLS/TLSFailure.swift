internal import COpenSSL

/// Why a TLS connection can't go on.
///
/// Code compares `reason`, and metrics count it. `detail` is OpenSSL's own text for the log and is
/// left out of `==`. A detail never holds key material or bytes of the application.
package struct TLSFailure: Error, Sendable {
    /// What went wrong. The raw value is a log field and a metric label: add, do not rename.
    package enum Reason: String, CaseIterable, Sendable {
        /// The peer speaks HTTP without TLS.
        case plainHTTP = "plain-http"
        /// The peer's first byte does not begin a TLS record.
        case notTLS = "not-tls"
        /// The two sides share no version of TLS.
        case versionUnsupported = "version-unsupported"
        /// The two sides share no cipher suite, group or signature algorithm.
        case noSharedCipher = "no-shared-cipher"
        /// The peer offered application protocols, and HTTP/1.1 is not among them (RFC 7301 §3.2).
        case noSharedProtocol = "no-shared-protocol"
        /// The origin's certificate does not lead to a trusted authority.
        case certificateUntrusted = "certificate-untrusted"
        /// A certificate of the origin's chain has expired.
        case certificateExpired = "certificate-expired"
        /// The authority has revoked a certificate of the chain.
        case certificateRevoked = "certificate-revoked"
        /// No list of revoked certificates says whether one of the chain was revoked: none is
        /// there, or its time is over.
        case revocationUnknown = "revocation-unknown"
        /// A certificate of the origin's chain is not valid yet.
        case certificateNotYetValid = "certificate-not-yet-valid"
        /// The origin's certificate is for another name.
        case hostMismatch = "host-mismatch"
        /// The client has shown no certificate where one is required.
        case certificateMissing = "certificate-missing"
        /// The peer refused our certificate.
        case certificateRefusedByPeer = "certificate-refused-by-peer"
        /// The peer ended the connection with another fatal alert.
        case peerAlert = "peer-alert"
        /// A record or handshake message breaks the protocol, or its authentication failed.
        case malformed = "malformed"
        /// The connection ended before the handshake did.
        case endedInHandshake = "ended-in-handshake"
        /// The handshake did not end in time.
        case handshakeTimeout = "handshake-timeout"
        /// The connection ended without close_notify: the read bytes may be incomplete (RFC 8446
        /// §6.1).
        case truncated = "truncated"
        /// A limit of ``TLSLimits`` was reached.
        case limitReached = "limit-reached"
        /// OpenSSL failed for a reason of its own, such as memory.
        case library = "library"
    }

    /// The connection ended in the middle of the handshake.
    package static let ended = TLSFailure(.endedInHandshake, "the connection ended")
    /// The peer causes answers of TLS, such as new keys, and takes none.
    package static let untaken = TLSFailure(.limitReached, "the peer takes no answers")
    /// The peer was too slow.
    package static let late = TLSFailure(.handshakeTimeout, "the handshake took too long")

    /// What went wrong.
    package let reason: Reason
    /// OpenSSL's text or the finding, for the log.
    package let detail: String

    /// Whether a peer's certificate was not accepted.
    package var isAboutCertificate: Bool {
        switch reason {
        case .certificateUntrusted, .certificateExpired, .certificateRevoked, .revocationUnknown,
            .certificateNotYetValid, .hostMismatch:
            true
        case .plainHTTP, .notTLS, .versionUnsupported, .noSharedCipher, .noSharedProtocol,
            .certificateMissing, .certificateRefusedByPeer, .peerAlert, .malformed,
            .endedInHandshake,
            .handshakeTimeout, .truncated, .limitReached, .library:
            false
        }
    }

    init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }
}

extension TLSFailure: Equatable {
    package static func == (left: TLSFailure, right: TLSFailure) -> Bool {
        left.reason == right.reason
    }
}

extension TLSFailure: CustomStringConvertible {
    package var description: String { "\(reason.rawValue): \(detail)" }
}

/// OpenSSL's notes about its last failure on this thread, taken from its queue.
struct OpenSSLErrors {
    /// The reason code of the first note, which is the cause; 0 for none.
    private(set) var firstReason: Int32 = 0
    /// The reason code of the last note; 0 for none.
    private(set) var lastReason: Int32 = 0
    /// All notes, first to last.
    private(set) var text = ""

    /// The most notes in the text.
    private static let notesMax = 4

    /// Empties the queue.
    static func taken() -> OpenSSLErrors {
        var errors = OpenSSLErrors()
        var notes: [String] = []
        while case let code = ERR_get_error(), code != 0 {
            let reason = ERR_GET_REASON(code)
            if errors.firstReason == 0 { errors.firstReason = reason }
            errors.lastReason = reason
            guard notes.count < notesMax else { continue }
            notes.append(words(for: code))
        }
        errors.text = notes.isEmpty ? "no reason given" : notes.joined(separator: "; ")
        return errors
    }

    private static func words(for code: UInt) -> String {
        // OpenSSL owns both texts, for as long as the process lives.
        if let words = ERR_reason_error_string(code) { return String(cString: words) }
        guard let library = ERR_lib_error_string(code) else { return "error \(code)" }
        return "\(String(cString: library)), reason \(ERR_GET_REASON(code))"
    }
}

extension TLSFailure {
    /// OpenSSL's numbers of a peer's alerts begin here (SSL_AD_REASON_OFFSET).
    private static let alertOffset: Int32 = 1000

    /// Makes a failure from OpenSSL's notes, and from its check of the peer's certificate.
    ///
    /// - Parameters:
    ///   - errors: OpenSSL's notes.
    ///   - verification: `SSL_get_verify_result`; used only when the certificate failed.
    init(_ errors: OpenSSLErrors, verification: Int) {
        let reason = errors.firstReason
        switch reason {
        case SSL_R_CERTIFICATE_VERIFY_FAILED: self.init(verification: verification)
        case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST: self.init(.plainHTTP, errors.text)
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW, SSL_R_WRONG_SSL_VERSION,
            SSL_R_VERSION_TOO_HIGH, SSL_R_UNKNOWN_PROTOCOL, SSL_R_BAD_PROTOCOL_VERSION_NUMBER,
            SSL_R_INAPPROPRIATE_FALLBACK:
            self.init(.versionUnsupported, errors.text)
        case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SUITABLE_KEY_SHARE, SSL_R_NO_SHARED_GROUPS,
            SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS,
            SSL_R_NO_SUITABLE_GROUPS:
            self.init(.noSharedCipher, errors.text)
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: self.init(.certificateMissing, errors.text)
        case SSL_R_NO_APPLICATION_PROTOCOL: self.init(.noSharedProtocol, errors.text)
        case SSL_R_UNEXPECTED_EOF_WHILE_READING: self.init(.truncated, errors.text)
        case Self.alertOffset..<Self.alertOffset + 256:
            self.init(alert: reason - Self.alertOffset, errors.text)
        case 0, Int32(ERR_R_MALLOC_FAILURE), Int32(ERR_R_INTERNAL_ERROR):
            self.init(.library, errors.text)
        default: self.init(.malformed, errors.text)
        }
    }

    /// A fatal alert of the peer (RFC 8446 §6.2).
    private init(alert: Int32, _ text: String) {
        switch alert {
        case SSL_AD_BAD_CERTIFICATE, SSL_AD_UNSUPPORTED_CERTIFICATE, SSL_AD_CERTIFICATE_REVOKED,
            SSL_AD_CERTIFICATE_EXPIRED, SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA,
            SSL_AD_CERTIFICATE_REQUIRED:
            self.init(.certificateRefusedByPeer, text)
        case SSL_AD_PROTOCOL_VERSION: self.init(.versionUnsupported, text)
        case SSL_AD_INSUFFICIENT_SECURITY: self.init(.noSharedCipher, text)
        case SSL_AD_NO_APPLICATION_PROTOCOL: self.init(.noSharedProtocol, text)
        default: self.init(.peerAlert, text)
        }
    }

    /// The failure of X.509 verification.
    private init(verification: Int) {
        // A constant text of OpenSSL.
        let text = String(cString: X509_verify_cert_error_string(verification))
        switch Int32(truncatingIfNeeded: verification) {
        case X509_V_ERR_CERT_HAS_EXPIRED: self.init(.certificateExpired, text)
        case X509_V_ERR_CERT_NOT_YET_VALID: self.init(.certificateNotYetValid, text)
        case X509_V_ERR_CERT_REVOKED: self.init(.certificateRevoked, text)
        case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_CRL_HAS_EXPIRED, X509_V_ERR_CRL_NOT_YET_VALID,
            X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER, X509_V_ERR_CRL_SIGNATURE_FAILURE,
            X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION:
            self.init(.revocationUnknown, text)
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            self.init(.hostMismatch, text)
        default: self.init(.certificateUntrusted, text)
        }
    }
}

/// A problem with the certificates, keys or trust that an operator named.
package struct TLSContextError: Error, Equatable, Sendable {
    /// What is wrong.
    package enum Reason: String, Sendable {
        /// The certificate file is missing, unreadable or holds no PEM certificate.
        case certificateUnreadable = "certificate-unreadable"
        /// The certificate's key or signature is too weak to be used.
        case certificateWeak = "certificate-weak"
        /// The key file is missing, unreadable or holds no PEM key.
        case keyUnreadable = "key-unreadable"
        /// The key file needs a passphrase, which can't be typed here.
        case keyEncrypted = "key-encrypted"
        /// The key is not the one of the first certificate.
        case keyMismatch = "key-mismatch"
        /// The file of trusted authorities is missing, unreadable or holds no PEM certificate.
        case trustUnreadable = "trust-unreadable"
        /// The file or folder of revoked certificates can't be used as a whole.
        case listUnreadable = "list-unreadable"
        /// An authority of clients' certificates has no list of revoked ones.
        case listMissing = "list-missing"
        /// The linked OpenSSL lacks a cipher suite.
        case cipherUnsupported = "cipher-unsupported"
        /// The linked OpenSSL lacks a group of key exchanges.
        case groupUnsupported = "group-unsupported"
        /// OpenSSL failed for a reason of its own, such as memory.
        case library = "library"
    }

    package let reason: Reason
    /// The file, as the operator named it; empty where no file is to blame.
    package let path: String
    /// OpenSSL's text.
    package let detail: String

    /// What the operator should give instead.
    package var use: String {
        switch reason {
        case .certificateUnreadable:
            "a PEM file with the server's certificate first and the intermediate ones after it"
        case .certificateWeak:
            "an EC key on P-256 or an RSA key of 2048 bits or more, signed with SHA-256"
        case .keyUnreadable: "a PEM file with the private key, readable by this program's user"
        case .keyEncrypted: "a key without passphrase (openssl pkey -in KEY -out PLAIN)"
        case .keyMismatch:
            """
            the key that this certificate was made for, or the server's own certificate first in \
            its file and the intermediate ones after it
            """
        case .trustUnreadable: "a PEM file with the certificates of authorities"
        case .listUnreadable:
            "a file of lists in PEM or one in DER, or a folder of such files, from the authorities"
        case .listMissing: "lists of all certificates in ca, and ca with the root of each of them"
        case .cipherUnsupported: "the others"
        case .groupUnsupported: "the others; X25519MLKEM768 needs OpenSSL 3.5"
        case .library: "other files; the text is OpenSSL's own"
        }
    }

    /// Takes OpenSSL's own text for the detail.
    init(_ reason: Reason, path: String = "") {
        let errors = OpenSSLErrors.taken()
        self.path = path
        detail = errors.text
        switch errors.firstReason {
        case SSL_R_EE_KEY_TOO_SMALL, SSL_R_CA_KEY_TOO_SMALL, SSL_R_CA_MD_TOO_WEAK:
            self.reason = .certificateWeak
        default: self.reason = reason
        }
    }

    /// A finding of our own.
    init(_ reason: Reason, path: String = "", detail: String) {
        (self.reason, self.path, self.detail) = (reason, path, detail)
    }

    package static func == (left: TLSContextError, right: TLSContextError) -> Bool {
        left.reason == right.reason && left.path == right.path
    }
}

extension TLSContextError: CustomStringConvertible {
    package var description: String {
        let place = path.isEmpty ? "" : "\(path): "
        return "\(place)\(reason.rawValue): \(detail); use \(use)"
    }
}
