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
        let octets = octets
        let high = octets.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        let low = octets.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
        switch octets.count {
        case 4: return .v4(UInt32(truncatingIfNeeded: high))
        case 16: return IPAddress(high: high, low: low)
        default: return .v4(0x7F00_0001)
        }
    }
}
