package import Telemetry

/// How one lane stands.
package struct LaneFacts: Sendable {
    package var number: Int
    /// Client connections that are open.
    package var openConnections: Int
    /// Connections to origins that wait for a request.
    package var pooledConnections: Int
    package var tally: Tally
    /// Upgraded connections, WebSockets above all, that are open.
    package var openTunnels: UInt64 { tally[.tunnels] &- tally[.tunnelsClosed] }

    package init(number: Int, openConnections: Int, pooledConnections: Int = 0, tally: Tally) {
        self.number = number
        self.openConnections = openConnections
        self.pooledConnections = pooledConnections
        self.tally = tally
    }
}
