package import Lanes
package import TLSSession

/// The gateway's address, and the certificates to trust.
package struct ServerPlace: Sendable {
    let address: SocketAddress
    private let tls: TLSContext?
    private let host: String

    /// - `tls`: `nil` for a plain connection.
    package init(_ address: SocketAddress, tls: TLSContext?, host: String) {
        self.address = address
        self.tls = tls
        self.host = host
    }

    /// What a new connection needs beside its socket.
    func session() throws(TLSFailure) -> (tls: TLSSession?, isSecure: Bool) {
        guard let tls else { return (nil, false) }
        return (try TLSSession(connecting: tls, to: host), true)
    }
}
