internal import COpenSSL

/// The files of a certificate that a listener shows.
package struct ServerCertificate: Hashable, Sendable {
    /// Path of a PEM file: the server's certificate, then the intermediate ones.
    package var chain: String
    /// Path of a PEM file with the private key, without a passphrase.
    package var key: String
    /// Names for which it is shown, `*.` for one label; empty for the names in the certificate.
    package var names: [String]

    package init(chain: String, key: String, names: [String] = []) {
        self.chain = chain
        self.key = key
        self.names = names
    }
}

/// The facts of a loaded certificate.
package struct TLSCertificate: Hashable, Sendable {
    /// The file, as the operator named it.
    package let file: String
    /// The names in it that a client can ask for: its DNS names (RFC 5280 §4.2.1.6).
    package let ownNames: [String]
    package let names: [String]
    /// The end of its validity, in seconds of Unix time.
    package let expiry: Int64
    /// Whether its key is one of RSA, which takes other cipher suites in TLS 1.2 than ECDSA's.
    package let signsByRSA: Bool
    /// Whether it demands a stapled OCSP response ("Must-Staple", RFC 7633), which is never sent.
    package let demandsStaple: Bool

    /// Whether clients that ask for this name accept it.
    package func covers(_ name: String) -> Bool {
        if ownNames.contains(where: { $0.lowercased() == name.lowercased() }) { return true }
        guard let dot = name.firstIndex(of: "."), !name.hasPrefix("*.") else { return false }
        let wildcard = "*" + name[dot...].lowercased()
        return ownNames.contains { $0.lowercased() == wildcard }
    }
}

/// The certificates of a PEM file for clients: a certificate, and those that lead to its root.
package enum CertificateChain {
    /// Why a client that trusts this machine's authorities would not find the root, in OpenSSL's
    /// words. `nil` when it finds the root, or when the file has no readable certificate.
    ///
    /// A missing intermediate certificate is visible nowhere else: browsers often have it from
    /// another site, but apps refuse the connection.
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

/// The choice of a certificate by the name that a client asks for (RFC 6066 §3).
///
/// An exact name takes precedence over a wildcard, which stands for one label (RFC 9525 §6.3). The
/// first certificate is for clients that ask for no name, or for a name that no certificate has.
package struct ServerNames: Sendable {
    private var exact: [String: Int] = [:]
    private var wildcards: [String: Int] = [:]

    package init() {}

    /// Adds a name for a certificate.
    ///
    /// - Returns: the certificate that already has the name, and keeps it.
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

    /// The certificate for a name; `nil` when only the first certificate is left.
    package func certificate(for name: String) -> Int? {
        let name = Self.normal(name)
        if let found = exact[name] { return found }
        guard let dot = name.firstIndex(of: "."), dot > name.startIndex else { return nil }
        return wildcards[String(name[name.index(after: dot)...])]
    }

    /// In lower case, without a final dot.
    private static func normal(_ name: String) -> String {
        let lower = name.lowercased()
        return lower.hasSuffix(".") ? String(lower.dropLast()) : lower
    }
}
