package import Telemetry

/// How the database is reached that several gateways share: `store.postgresql`.
package struct PostgreSQLSettings: Hashable, Sendable {
    /// `address`, mandatory: what libpq takes, as `host=db1,db2 dbname=portcullis passfile=…`,
    /// without a password.
    package var address: String
    /// `connect_timeout`: how long a connection may take. Default 5 s, 100 ms…1 min.
    package var connectTimeout = Duration.seconds(5)
    /// `statement_timeout`: how long the database may take for what is asked at once. Default 2 s,
    /// 100 ms…1 min.
    package var statementTimeout = Duration.seconds(2)
    /// `keys_cached`: keys in memory; others are read when they are used. Default 1,000,000,
    /// 1,000…100,000,000.
    package var keysCached = 1_000_000

    /// `revoked_within`: the longest time from the commit of a revocation until no gateway admits a
    /// session of the key. A gateway that has not heard from the database for so long admits none.
    /// Default 3 s, 2 s…1 min: changes are read every second.
    package var revokedWithin = Duration.seconds(3)

    package init(address: String) { self.address = address }
}

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
