import HTTPWire

/// `origins.*.tls`: how an origin is spoken to under TLS.
package struct OriginTLSSettings: Hashable, Sendable {
    /// Whose certificates are taken.
    package enum Trust: Hashable, Sendable {
        /// Those of the authorities that the machine trusts, with the server's name. The default.
        case system
        /// `ca`: those that lead to a certificate of this PEM file, with the server's name.
        case file(String)
        /// `insecure: true`: anybody's.
        case anyone
    }

    package let trust: Trust
    /// `certificate` and `key`: what is shown to servers that ask for it; PEM files.
    package let certificateFile: String?
    package let keyFile: String?
    /// `server_name`: the name that certificates must have, and that is sent as SNI; `nil` for the
    /// server's host as `servers` names it.
    package let serverName: String?
    /// `minimum`: default 1.2.
    package let minimumVersion: ListenSettings.TLS.Version

    /// The files that are loaded.
    package var files: [String] {
        let authorities: [String] = if case .file(let path) = trust { [path] } else { [] }
        return authorities + [certificateFile, keyFile].compactMap(\.self)
    }

    /// The name that a server's certificate must have. A Unix socket has none of its own.
    package func name(of server: ServerAddress) -> String {
        if let serverName { return serverName }
        return switch server {
        case .ip(let address, _): address.text
        case .name(let name, _): name
        case .unix: "localhost"
        }
    }
}
