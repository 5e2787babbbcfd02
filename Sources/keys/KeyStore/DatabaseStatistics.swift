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
    /// `gateway`: the name by which operators know this gateway; empty for the host's.
    package var gateway = ""

    package init(address: String) { self.address = address }
}

/// How the connections to a database stand that several gateways share. Totals are since the start.
package struct DatabaseStatistics: Sendable {
    /// The purpose of a connection. The raw value is a label of metrics.
    package enum Role: String, CaseIterable, Sendable {
        /// Uses, enrolments and look-ups of keys.
        case writer
        /// Reads the changes of others.
        case reader
        /// Receives notifications of changes.
        case listener
        /// Receipts and their renewal.
        case receipts
        /// Orders of operators, and what the gateways of a fleet know of each other.
        case fleet
    }

    package struct Connection: Sendable {
        package var role: Role
        /// There is a connection that has not ended, as far as this end knows.
        package var isConnected = false
        /// Connections that were made, the first one included.
        package var made: UInt64 = 0
        /// Connections that were lost, or closed since the server takes no writes.
        package var lost: UInt64 = 0
        /// Failed tries to connect.
        package var failures: UInt64 = 0
        /// Nanoseconds from a query to its answer. Includes refusals, but not lost queries.
        package var roundTrips = Histogram()
        /// Transactions that were retried because of a serialization conflict.
        package var serializationRetries: UInt64 = 0
        /// Transactions that were retried because of a deadlock.
        package var deadlockRetries: UInt64 = 0

        package init(_ role: Role) { self.role = role }
    }

    /// One for each role, in the order of roles.
    package var connections: [Connection]

    package init(_ connections: [Connection]) { self.connections = connections }

    package var retries: (serialization: UInt64, deadlock: UInt64) {
        connections.reduce((0, 0)) {
            ($0.0 &+ $1.serializationRetries, $0.1 &+ $1.deadlockRetries)
        }
    }
}
