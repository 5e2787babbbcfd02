package import Lanes

/// One server of an origin.
package struct OriginServerSettings: Sendable {
    /// As the configuration writes it; for logs.
    package let name: String
    package let address: SocketAddress
    /// Its share of the requests, beside those of the other servers; 1 or more.
    package var weight = 1
    package var role = Role.primary
    /// The most connections of all lanes, with those that are idle; `nil` for no limit.
    package var connectionsMax: Int?
    /// `nil` for a server that is spoken to in the clear.
    package var tls: OriginTLS?
    /// Shared by the lanes.
    package let state: ServerState
    /// Tells servers apart for hashing: the same on all lanes, in all gateways, after a restart.
    let seed: UInt64

    /// When a server gets requests.
    package enum Role: Sendable {
        case primary
        /// Only while no primary server is up.
        case backup
    }

    package init(name: String, address: SocketAddress, state: ServerState = ServerState()) {
        self.name = name
        self.address = address
        self.state = state
        // FNV-1a. The port stands in the name.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in Array(name.utf8) + address.octets {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
        }
        seed = Balancer.mixed(hash)
    }

    /// The same server with a state of its own, and without a limit of connections.
    var alone: OriginServerSettings {
        var alone = OriginServerSettings(name: name, address: address)
        alone.tls = tls
        return alone
    }

    /// Whether what is kept of one suits the other: the server is the same, and so is what it has
    /// to show.
    func suits(_ other: OriginServerSettings) -> Bool {
        state === other.state && tls?.context === other.tls?.context && tls?.name == other.tls?.name
            && (connectionsMax == nil) == (other.connectionsMax == nil)
    }
}
