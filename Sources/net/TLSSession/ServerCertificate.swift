internal import COpenSSL

/// A certificate that a listener shows, as its files are named.
package struct ServerCertificate: Hashable, Sendable {
    /// Path of a PEM file: the server's certificate, then the intermediate ones.
    package var chain: String
    /// Path of a PEM file with the private key, without a passphrase.
    package var key: String
    /// Names for which it is shown, `*.` for one label; none for those in the certificate.
    package var names: [String]
    /// Path of a file with the authority's OCSP response, in DER; `nil` for no stapling.
    package var ocsp: String?
    /// What is stapled until its end if the file has no response that can be used.
    package var previousStaple: StapledResponse?

    package init(
        chain: String,
        key: String,
        names: [String] = [],
        ocsp: String? = nil,
        previousStaple: StapledResponse? = nil
    ) {
        self.chain = chain
        self.key = key
        self.names = names
        self.ocsp = ocsp
        self.previousStaple = previousStaple
    }
}

/// What is known of a certificate that was loaded.
package struct TLSCertificate: Hashable, Sendable {
    /// The file, as the operator named it.
    package let file: String
    /// The names in it that a client can ask for: its DNS names (RFC 5280 §4.2.1.6).
    package let ownNames: [String]
    /// The names for which it is shown.
    package let names: [String]
    /// The end of its validity, in seconds of Unix time.
    package let expiry: Int64
    /// Whether it demands a stapled response ("Must-Staple", RFC 7633).
    package let demandsStaple: Bool
    /// The file with the OCSP response; `nil` for no stapling.
    package let stapleFile: String?
    /// What is stapled, until its end.
    package let staple: StapledResponse?
    /// Why what the file has is not stapled; `nil` when it is.
    package let stapleProblem: StapleProblem?

    /// Whether clients that ask for a name take it for the name's.
    package func covers(_ name: String) -> Bool {
        if ownNames.contains(where: { $0.lowercased() == name.lowercased() }) { return true }
        guard let dot = name.firstIndex(of: "."), !name.hasPrefix("*.") else { return false }
        let wildcard = "*" + name[dot...].lowercased()
        return ownNames.contains { $0.lowercased() == wildcard }
    }
}

/// What a PEM file shows to clients: a certificate, and those that lead to its root.
package enum CertificateChain {
    /// Why a client that trusts what this machine trusts would not find the root, in OpenSSL's
    /// words; `nil` when it does, or when the file has no certificate that can be read.
    ///
    /// An intermediate certificate that is missing shows nowhere else: browsers often have it from
    /// another site, and apps then refuse the connection.
    package static func fault(of path: String) -> String? {
        ERR_clear_error()
        guard let context = SSL_CTX_new(TLS_server_method()) else { return nil }
        defer {
            SSL_CTX_free(context)
            ERR_clear_error()
        }
        guard SSL_CTX_use_certificate_chain_file(context, path) == 1,
            SSL_CTX_set_default_verify_paths(context) == 1
        else { return nil }
        // SSL_CTX_build_cert_chain(3): the file's other certificates lead to the root, and are not
        // trusted themselves.
        let flags = Int(SSL_BUILD_CHAIN_FLAG_UNTRUSTED)
        guard SSL_CTX_ctrl(context, SSL_CTRL_BUILD_CERT_CHAIN, flags, nil) <= 0 else { return nil }
        var data: UnsafePointer<CChar>?
        var dataFlags: Int32 = 0
        _ = ERR_peek_last_error_data(&data, &dataFlags)
        let text = data.map { String(cString: $0) } ?? ""
        let mark = "Verify error:"
        return text.hasPrefix(mark) ? String(text.dropFirst(mark.count)) : "the chain is not whole"
    }
}

/// Which certificate a client gets by the name that it asks for (RFC 6066 §3).
///
/// An exact name goes before a wildcard, which stands for one label (RFC 9525 §6.3). The first
/// certificate is for all who ask for no name, or for one that no certificate has.
package struct ServerNames: Sendable {
    private var exact: [String: Int] = [:]
    private var wildcards: [String: Int] = [:]

    package init() {}

    /// Notes that a certificate is for a name.
    ///
    /// - Returns: the certificate that has the name already, and keeps it.
    @discardableResult
    package mutating func add(_ name: String, _ certificate: Int) -> Int? {
        let name = Self.normal(name)
        guard name.hasPrefix("*.") else {
            if let holder = exact[name] { return holder == certificate ? nil : holder }
            exact[name] = certificate
            return nil
        }
        let rest = String(name.dropFirst(2))
        if let holder = wildcards[rest] { return holder == certificate ? nil : holder }
        wildcards[rest] = certificate
        return nil
    }

    /// The certificate for a name; `nil` when no other than the first is for it.
    package func certificate(for name: String) -> Int? {
        let name = Self.normal(name)
        if let found = exact[name] { return found }
        guard let dot = name.firstIndex(of: "."), dot > name.startIndex else { return nil }
        return wildcards[String(name[name.index(after: dot)...])]
    }

    /// In lower case, without the dot that may end a name.
    private static func normal(_ name: String) -> String {
        let lower = name.lowercased()
        return lower.hasSuffix(".") ? String(lower.dropLast()) : lower
    }
}
