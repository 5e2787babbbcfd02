internal import COpenSSL

/// The versions and algorithms of TLS that a context accepts.
///
/// Names are OpenSSL's. Those that the caller gives come from a closed list of good ones: here is
/// checked only that the linked OpenSSL has each of them, since it leaves out some unknown names
/// without a word.
package struct TLSTerms: Hashable, Sendable {
    /// The oldest version that is accepted.
    package var minimumVersion: TLSContext.MinimumVersion
    /// Cipher suites of TLS 1.2, the best first; empty for ``TLSTerms/standardCiphers``.
    package var ciphers: [String]
    /// Cipher suites of TLS 1.3, the best first; empty for OpenSSL's three, which are all good.
    package var suites: [String]
    /// Groups of key exchanges, the best first; empty for OpenSSL's.
    package var groups: [String]
    /// The application protocols that are offered (RFC 7301), the best first.
    package var protocols: [String]

    package init(
        minimumVersion: TLSContext.MinimumVersion = .tls12,
        ciphers: [String] = [],
        suites: [String] = [],
        groups: [String] = [],
        protocols: [String] = [TLSContext.http11]
    ) {
        self.minimumVersion = minimumVersion
        self.ciphers = ciphers
        self.suites = suites
        self.groups = groups
        self.protocols = protocols
    }

    /// ECDHE with AES-GCM or ChaCha20-Poly1305: RFC 9325 §4.2 recommends these for TLS 1.2.
    private static let standardCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20"

    /// Makes a context accept these alone.
    ///
    /// - Throws: `library`; or that OpenSSL lacks one, whose name is the detail.
    func install(in context: OpaquePointer) throws(TLSContextError) {
        let version = minimumVersion == .tls12 ? TLS1_2_VERSION : TLS1_3_VERSION
        guard copenssl_ssl_ctx_set_min_proto_version(context, version) == 1 else {
            throw TLSContextError(.library)
        }
        let list = ciphers.isEmpty ? Self.standardCiphers : ciphers.joined(separator: ":")
        // Both return 0 where OpenSSL has none of the list: then the first name is what it lacks.
        var isTaken = SSL_CTX_set_cipher_list(context, list) == 1
        if !suites.isEmpty {
            let list = suites.joined(separator: ":")
            isTaken = SSL_CTX_set_ciphersuites(context, list) == 1 && isTaken
        }
        for name in ciphers + suites where copenssl_has_cipher(context, name) != 1 {
            throw TLSContextError(.cipherUnsupported, lacking: name)
        }
        guard isTaken else { throw TLSContextError(.library) }
        guard !groups.isEmpty else { return }
        if copenssl_ssl_ctx_set_groups(context, groups.joined(separator: ":")) == 1 { return }
        let lacking = groups.first { copenssl_ssl_ctx_set_groups(context, $0) != 1 }
        throw TLSContextError(.groupUnsupported, lacking: lacking ?? "")
    }
}

extension TLSContextError {
    /// OpenSSL lacks an algorithm.
    fileprivate init(_ reason: Reason, lacking name: String) {
        ERR_clear_error()
        let version = OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? ""
        self.init(reason, detail: "\(name), which OpenSSL \(version) does not have")
    }
}
