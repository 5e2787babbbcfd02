package import Lanes

/// One server of an origin.
package struct OriginServerSettings: Sendable {
    /// As the configuration writes it; for logs.
    package let name: String
    package let address: SocketAddress
    /// Shared by the lanes.
    package let health = ServerHealth()

    package init(name: String, address: SocketAddress) {
        self.name = name
        self.address = address
    }
}
