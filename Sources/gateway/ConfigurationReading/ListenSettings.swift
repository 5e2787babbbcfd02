package import HTTPWire

/// One address on which clients are accepted.
package struct ListenSettings: Hashable, Sendable {
    /// The beginning of connections.
    package enum Preface: Hashable, Sendable {
        /// The client's first byte.
        case none
        /// A header of the PROXY protocol, version 1 or 2, by a peer of `trusted_proxies`.
        case proxyHeader
    }

    /// Whether clients may speak HTTP/2: under TLS by ALPN, without TLS by prior knowledge (RFC
    /// 9113 §3.2, §3.3).
    package enum HTTP2: String, CaseIterable, Hashable, Sendable {
        case off, on
    }

    /// An IP address and port (0: the system chooses), or a Unix socket.
    package let address: ServerAddress
    /// `nil` for plain HTTP.
    package var tls: TLS?
    /// `http2`: default on under TLS, where clients choose, and off without TLS, but for
    /// `decides: ext_authz_grpc`, which needs it.
    package var http2 = HTTP2.off
    /// `proxy_protocol: true` means a PROXY header. Default none.
    package var preface = Preface.none
    /// `decides` and `content`: its clients are other proxies, which ask for decisions. Default:
    /// its clients' requests go to origins.
    package var decides: DecisionQuestion?
}

/// The number of event loops that serve connections.
package enum EventLoopCount: Hashable, Sendable {
    /// One for each core that the process may use. The default.
    case perCore
    /// 1…256.
    case fixed(Int)
}

extension ListenSettings {
    /// A listener's certificates, and those that it asks its clients for.
    package struct TLS: Hashable, Sendable {
        /// The oldest accepted version of the protocol.
        package enum Version: String, CaseIterable, Sendable {
            case tls12 = "1.2"
            case tls13 = "1.3"
        }

        /// A certificate and its key. Changed files are read again.
        package struct Certificate: Hashable, Sendable {
            /// PEM: the certificate, then those that lead to its root.
            package let certificateFile: String
            /// PEM: the private key, without a passphrase.
            package let keyFile: String
            /// DER: the authority's OCSP response; `nil` for no stapling.
            package let stapleFile: String?
            /// Names for which it is shown, in lower case; empty for those in the certificate.
            package let names: [String]
            /// Its key path, such as `listen[0].tls.certificates[1]`.
            package let keyPath: String
        }

        /// The certificates that clients are asked for.
        package struct Client: Hashable, Sendable {
            /// Whether a client without a certificate is served.
            package enum Demand: String, CaseIterable, Sendable { case optional, required }

            /// PEM: the authorities that sign clients' certificates.
            package let authoritiesFile: String
            /// Mandatory.
            package let demand: Demand
            /// Its key path, such as `listen[0].tls.client`.
            package let keyPath: String
        }

        /// At least one. The first is for clients that ask for no name, or for one that no
        /// certificate has.
        package let certificates: [Certificate]
        /// Default 1.2.
        package let minimumVersion: Version
        /// `nil` where clients are not asked.
        package let client: Client?

        package var files: [String] {
            certificates.flatMap { [$0.certificateFile, $0.keyFile, $0.stapleFile] }
                .compactMap(\.self) + [client?.authoritiesFile].compactMap(\.self)
        }
    }

    /// This listener without TLS.
    package var withoutTLS: ListenSettings {
        var copy = self
        copy.tls = nil
        return copy
    }
}
