/// What has become of the connections to the database. Totals are since the start.
package struct DatabaseStatistics: Hashable, Sendable {
    /// Connections that were made, the first ones included.
    package var connections: UInt64
    /// Transactions that met others at the same rows, and were asked once more.
    package var collisions: UInt64
}
