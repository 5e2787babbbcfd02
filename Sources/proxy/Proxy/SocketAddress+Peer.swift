package import HTTPWire
package import Lanes

extension SocketAddress {
    init(_ address: IPAddress, port: UInt16) {
        switch address {
        case .v4(let address): self.init(v4: address, port: port)
        case .v6(let high, let low): self.init(v6: high, low, port: port)
        }
    }

    /// The IP address; of a Unix socket's peer the loopback address, since it is on this host.
    package var ipAddress: IPAddress {
        if let v4 { return .v4(v4) }
        if let v6 { return IPAddress(high: v6.high, low: v6.low) }
        return .v4(0x7F00_0001)
    }
}
