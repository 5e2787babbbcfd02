package import EventLoops
package import HTTPWire

/// A connection that was closed since it did not begin with a PROXY header that counts.
package struct ProxiedFault: Sendable {
    /// What the log says of it.
    package let what: String
    package let peer: SocketAddress
    /// How many there were on the event loop since the last one that was told.
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

    package var peerText: String { peer.isUnix ? "a Unix socket" : peer.ipAddress.text }
}

extension ProxiedFault {
    /// How often an event loop tells of failures that strangers can cause.
    struct Pace {
        /// How long nothing more is said: ten seconds.
        private static let quietNanoseconds: UInt64 = 10_000_000_000

        private var toldAt: UInt64?
        private var untold = 0

        /// Counts a failure: how many came since the last one that was told, this one included;
        /// `nil` when it is not to be told now.
        mutating func count(now: UInt64) -> Int? {
            untold += 1
            if let toldAt, now &- toldAt < Self.quietNanoseconds { return nil }
            toldAt = now
            defer { untold = 0 }
            return untold
        }
    }
}

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
