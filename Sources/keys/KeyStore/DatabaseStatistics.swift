package import Telemetry

/// How the connections to a database stand that several gateways share. Totals are since the start.
package struct DatabaseStatistics: Sendable {
    /// What a connection is for. The raw value is a label of metrics.
    package enum Role: String, CaseIterable, Sendable {
        /// Uses, enrolments, and keys that are looked up.
        case writer
        /// What others have changed.
        case reader
        /// Hears of changes.
        case listener
        /// Receipts that are renewed.
        case receipts
    }

    package struct Connection: Sendable {
        package var role: Role
        /// There is a connection that has not ended, as far as this end knows.
        package var isConnected = false
        /// Connections that were made, the first one included.
        package var made: UInt64 = 0
        /// Connections that were lost, or left since the server takes no writes.
        package var lost: UInt64 = 0
        /// Tries that came to no connection.
        package var failures: UInt64 = 0
        /// Nanoseconds from what was asked to its answer, with refusals, and without what was lost.
        package var roundTrips = Histogram()
        /// Transactions that were asked once more, since they met others at the same rows.
        package var serializationRetries: UInt64 = 0
        /// The same, where they waited for each other.
        package var deadlockRetries: UInt64 = 0

        package init(_ role: Role) { self.role = role }
    }

    /// In the order of their roles; one for each.
    package var connections: [Connection]

    package init(_ connections: [Connection]) { self.connections = connections }

    package var retries: (serialization: UInt64, deadlock: UInt64) {
        connections.reduce((0, 0)) {
            ($0.0 &+ $1.serializationRetries, $0.1 &+ $1.deadlockRetries)
        }
    }
}
