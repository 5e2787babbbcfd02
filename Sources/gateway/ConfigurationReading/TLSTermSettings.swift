/// The versions and algorithms of TLS, at a listener and to an origin: `minimum`, `ciphers` and
/// `curves`.
///
/// The lists are closed: what a file can name is good (RFC 9325 §4.2), so that no file makes TLS
/// weaker than it is without one.
package struct TLSTermSettings: Hashable, Sendable, Declared {
    /// The oldest accepted version of the protocol.
    package enum Version: String, CaseIterable, Sendable {
        case tls12 = "1.2"
        case tls13 = "1.3"
    }

    /// A cipher suite with authenticated encryption and forward secrecy, by the name that nginx,
    /// HAProxy and Envoy know, which is OpenSSL's.
    package enum Cipher: String, CaseIterable, Sendable {
        case aes128 = "TLS_AES_128_GCM_SHA256"
        case aes256 = "TLS_AES_256_GCM_SHA384"
        case chacha20 = "TLS_CHACHA20_POLY1305_SHA256"
        case aes128ByECDSA = "ECDHE-ECDSA-AES128-GCM-SHA256"
        case aes256ByECDSA = "ECDHE-ECDSA-AES256-GCM-SHA384"
        case chacha20ByECDSA = "ECDHE-ECDSA-CHACHA20-POLY1305"
        case aes128ByRSA = "ECDHE-RSA-AES128-GCM-SHA256"
        case aes256ByRSA = "ECDHE-RSA-AES256-GCM-SHA384"
        case chacha20ByRSA = "ECDHE-RSA-CHACHA20-POLY1305"

        /// The version that has it: no suite is for both.
        var version: Version {
            switch self {
            case .aes128, .aes256, .chacha20: .tls13
            case .aes128ByECDSA, .aes256ByECDSA, .chacha20ByECDSA, .aes128ByRSA, .aes256ByRSA,
                .chacha20ByRSA:
                .tls12
            }
        }

        /// Whether a server with a key of RSA, or with another one, can use it.
        func serves(rsa: Bool) -> Bool {
            switch self {
            case .aes128, .aes256, .chacha20: true
            case .aes128ByECDSA, .aes256ByECDSA, .chacha20ByECDSA: !rsa
            case .aes128ByRSA, .aes256ByRSA, .chacha20ByRSA: rsa
            }
        }
    }

    /// A group of the key exchange.
    package enum Curve: String, CaseIterable, Sendable {
        case x25519 = "X25519"
        case p256 = "P-256"
        case p384 = "P-384"
        case p521 = "P-521"
        /// X25519 with ML-KEM-768, for TLS 1.3 alone; in OpenSSL from 3.5 on.
        case x25519MLKEM768 = "X25519MLKEM768"
    }

    package private(set) var minimumVersion = Version.tls12
    /// The best first; empty for all.
    private var ciphers: [Cipher] = []
    /// The best first; empty for OpenSSL's.
    private var chosenCurves: [Curve] = []

    package static let keys = Keys<Self> {
        Key("minimum", \.minimumVersion, .word).means("The oldest accepted version of TLS.")
        Key("ciphers", \.ciphers, .words())
            .means(
                "The only cipher suites, of TLS 1.3 and 1.2, the best first.",
                otherwise: "all of them"
            )
        Key("curves", \.chosenCurves, .words())
            .means("The only groups of key exchanges, the best first.", otherwise: "OpenSSL's")
    }

    /// The suites of a version by OpenSSL's names; empty for all.
    package func ciphers(of version: Version) -> [String] {
        ciphers.filter { $0.version == version }.map(\.rawValue)
    }

    /// The groups by OpenSSL's names; empty for its own.
    package var curves: [String] { chosenCurves.map(\.rawValue) }

    /// Whether a server with such a key can use a suite of each version.
    package func serves(rsa: Bool) -> Bool {
        guard minimumVersion == .tls12, !ciphers.isEmpty else { return true }
        return ciphers.contains { $0.version == .tls12 && $0.serves(rsa: rsa) }
    }

    /// Reports lists that leave nothing to a version that is accepted, or that name what no version
    /// uses.
    func check(_ reader: MappingReader) {
        func names(_ version: Version) -> String {
            Cipher.allCases.filter { $0.version == version }.map(\.rawValue).joined(separator: ", ")
        }
        if !ciphers.isEmpty {
            let old = ciphers.first { $0.version == .tls12 }
            if !ciphers.contains(where: { $0.version == .tls13 }) {
                let use = "one or more of \(names(.tls13)) too: TLS 1.3 is never off"
                reader.error("ciphers", found: "no suite of TLS 1.3", use: use)
            }
            if minimumVersion == .tls12, old == nil {
                let use = "minimum: 1.3, or one or more of \(names(.tls12)) too"
                reader.error("ciphers", found: "no suite of TLS 1.2, which is accepted", use: use)
            }
            if minimumVersion == .tls13, let old {
                let found = "\(old.rawValue) of TLS 1.2 beside minimum: 1.3"
                reader.error(
                    "ciphers",
                    found: found,
                    use: "suites of TLS 1.3 alone: \(names(.tls13))"
                )
            }
        }
        if minimumVersion == .tls12, chosenCurves == [.x25519MLKEM768] {
            let use = "minimum: 1.3, or X25519 too"
            reader.error("curves", found: "no group of TLS 1.2, which is accepted", use: use)
        }
    }
}
