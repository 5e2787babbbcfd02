internal import COpenSSL

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
        /// OpenSSL failed for a reason of its own, such as memory.
        case library = "library"
    }

    package let reason: Reason
    /// The file, as the operator named it; empty where no file is to blame.
    package let path: String
    /// OpenSSL's text.
    package let detail: String

    /// The operator's next step.
    package var hint: String {
        switch reason {
        case .certificateUnreadable:
            "give a PEM file with the server's certificate first and the intermediate ones after it"
        case .certificateWeak:
            "use an EC key on P-256 or an RSA key of 2048 bits or more, signed with SHA-256"
        case .keyUnreadable:
            "give a PEM file with the private key, readable by the user the gateway runs as"
        case .keyEncrypted:
            "take the passphrase off (openssl pkey -in KEY -out PLAIN) and restrict who can read it"
        case .keyMismatch: "the first certificate of the chain has to be the one made for this key"
        case .trustUnreadable:
            "give a PEM file with the certificates of the authorities that signed the origin's"
        case .library: "this is not expected; the text is OpenSSL's own"
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

    package static func == (left: TLSContextError, right: TLSContextError) -> Bool {
        left.reason == right.reason && left.path == right.path
    }
}

extension TLSContextError: CustomStringConvertible {
    package var description: String {
        let place = path.isEmpty ? "" : "\(path): "
        return "\(place)\(reason.rawValue): \(detail); \(hint)"
    }
}
