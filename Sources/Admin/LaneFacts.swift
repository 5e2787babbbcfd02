package import Telemetry

/// How one lane stands.
package struct LaneFacts: Sendable {
    package var number: Int
    /// Client connections that are open.
    package var openConnections: Int
    package var tally: Tally

    package init(number: Int, openConnections: Int, tally: Tally) {
        self.number = number
        self.openConnections = openConnections
        self.tally = tally
    }
}
