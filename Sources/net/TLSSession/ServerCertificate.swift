/// A certificate that a listener shows, as its files are named.
package struct ServerCertificate: Hashable, Sendable {
    /// Path of a PEM file: the server's certificate, then the intermediate ones.
    package var chain: String
    /// Path of a PEM file with the private key, without a passphrase.
    package var key: String
    /// Names for which it is shown, `*.` for one label; none for those in the certificate.
    package var names: [String]

    package init(chain: String, key: String, names: [String] = []) {
        self.chain = chain
        self.key = key
        self.names = names
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

    /// Whether clients that ask for a name take it for the name's.
    package func covers(_ name: String) -> Bool {
        if ownNames.contains(where: { $0.lowercased() == name.lowercased() }) { return true }
        guard let dot = name.firstIndex(of: "."), !name.hasPrefix("*.") else { return false }
        let wildcard = "*" + name[dot...].lowercased()
        return ownNames.contains { $0.lowercased() == wildcard }
    }
}
