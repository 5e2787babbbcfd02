/// One address on which clients are accepted.
package struct ListenSettings: Hashable, Sendable {
    /// The certificate and key of a listener.
    package struct TLS: Hashable, Sendable {
        /// The oldest version of the protocol that is spoken.
        package enum Version: String, CaseIterable, Sendable {
            case tls12 = "1.2"
            case tls13 = "1.3"
        }

        /// PEM: the certificate, then those that lead to its root. Read anew on a reload.
        package let certificateFile: String
        /// PEM: the private key, without a passphrase.
        package let keyFile: String
        /// Default 1.2.
        package let minimumVersion: Version
    }

    /// An IP address and port (0: the system chooses), or a Unix socket.
    package let address: ServerAddress
    /// `nil` for plain HTTP.
    package let tls: TLS?
}

/// How many lanes serve connections.
package enum LaneCount: Hashable, Sendable {
    /// One for each core that the process may use. The default.
    case perCore
    /// 1…256.
    case fixed(Int)
}
