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
