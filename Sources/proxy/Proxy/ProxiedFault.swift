import ClientStreams
import HTTPWire
package import Lanes

/// A connection that was closed since it did not begin with a PROXY header that counts.
package struct ProxiedFault: Sendable {
    /// What the log says of it.
    package let what: String
    package let peer: SocketAddress
    /// How many there were on the lane since the last one that was told.
    package let count: Int

    init(_ reason: Reason, _ peer: SocketAddress, count: Int) {
        self.peer = peer
        self.count = count
        switch reason {
        case .stranger: what = "it is none of trusted_proxies"
        case .header(.malformed(let reason)):
            what = "its PROXY header is malformed: \(reason.rawValue)"
        case .header(.late): what = "its PROXY header did not come within timeouts.handshake"
        case .header(.gone), .header(.unused): what = "it ended before its PROXY header"
        }
    }

    enum Reason {
        /// The peer may not say who the client is.
        case stranger
        case header(ProxiedConnection.Fault)
    }

    /// The peer as text.
    package var peerText: String { peer.isUnix ? "a Unix socket" : peer.ipAddress.text }
}
