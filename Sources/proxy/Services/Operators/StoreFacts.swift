package import KeyStore
package import Telemetry

/// The state of the store of keys.
package struct StoreFacts: Sendable {
    /// Keys that are known, the revoked ones included.
    package var keys: Int
    package var revokedKeys: Int
    /// Changes that are not on disk yet.
    package var pendingCommits: Int
    /// Whether the store can't write or read changes at present.
    package var isDegraded: Bool
    /// What fails: all of it, or writing alone. Then only requests that wait for the disk fail.
    package var outage = LocalFault.storeDegraded
    /// Whether the gateway can serve no request while this fails. If not, its outage leaves the
    /// gateway ready, for the other requests.
    package var isNeeded = true
    /// Why the store can't be read, or why its last failed transaction failed. The latter stays
    /// after recovery.
    package var lastError: String?
    /// Transactions that failed since the start.
    package var failedCommits: UInt64 = 0
    /// Keys deleted since the start because they were not used for long.
    package var expiredKeys: UInt64 = 0
    /// Changes in a transaction.
    package var commitSizes = Histogram()
    /// Time in a transaction, in nanoseconds.
    package var commitDurations = Histogram()
    /// Whether this process has created it, since there was none.
    package var isNew = false
    /// Uses and look-ups that wait for the next transaction.
    package var waiting = 0
    /// Uses and look-ups that found no room to wait, since the start.
    package var turnedAway: UInt64 = 0
    /// Keys that were looked up in the store, and those of them that it had, since the start.
    package var lookUps: UInt64 = 0
    package var foundLookUps: UInt64 = 0
    /// The connections to the database; `nil` where the store is no database.
    package var database: DatabaseStatistics?

    package init(
        keys: Int,
        revokedKeys: Int,
        pendingCommits: Int = 0,
        isDegraded: Bool = false,
        lastError: String? = nil
    ) {
        self.keys = keys
        self.revokedKeys = revokedKeys
        self.pendingCommits = pendingCommits
        self.isDegraded = isDegraded
        self.lastError = lastError
    }
}

// A store that several gateways share. The metric families exist for every store, so that alerts
// and dashboards name nothing that does not exist; for a file they have no samples.
extension StoreFacts {
    func writeWaiting(into out: inout Exposition) {
        out.gauge("store_waiting", waiting, help: "Uses and look-ups that wait for it.")
        out.counter(
            "store_turned_away_total",
            turnedAway,
            help: "Uses, look-ups and enrolments that found no room to wait."
        )
        out.metric(
            "key_look_ups_total",
            type: "counter",
            help: "Keys that were not in memory and looked up, by whether the store had them."
        )
        out.sample("key_look_ups_total", labels: [("found", "yes")], foundLookUps)
        let absent = lookUps >= foundLookUps ? lookUps - foundLookUps : 0
        out.sample("key_look_ups_total", labels: [("found", "no")], absent)
    }

    func writeDatabase(into out: inout Exposition) {
        let connections = database?.connections ?? []
        func family(
            _ name: String,
            type: String,
            help: String,
            _ value: (DatabaseStatistics.Connection) -> UInt64
        ) {
            out.metric(name, type: type, help: help)
            for connection in connections {
                out.sample(
                    name,
                    labels: [("connection", connection.role.rawValue)],
                    value(connection)
                )
            }
        }
        family(
            "database_connected",
            type: "gauge",
            help: "Whether there is a connection that has not ended."
        ) { $0.isConnected ? 1 : 0 }
        family("database_connections_total", type: "counter", help: "Connections that were made.") {
            $0.made
        }
        family(
            "database_connections_lost_total",
            type: "counter",
            help: "Connections that were lost, or left since the server takes no writes."
        ) { $0.lost }
        family(
            "database_connect_failures_total",
            type: "counter",
            help: "Tries that came to no connection."
        ) { $0.failures }
        out.metric(
            "database_retries_total",
            type: "counter",
            help: "Transactions that met others at the same rows and were asked once more."
        )
        if let retries = database?.retries {
            out.sample(
                "database_retries_total",
                labels: [("cause", "serialization")],
                retries.serialization
            )
            out.sample("database_retries_total", labels: [("cause", "deadlock")], retries.deadlock)
        }
        out.metric(
            "database_round_trip_seconds",
            type: "histogram",
            help: "Time from a transaction that is sent to its answer."
        )
        for connection in connections where connection.role != .listener {
            out.histogram(
                "database_round_trip_seconds",
                connection.roundTrips,
                unit: 1e-9,
                labels: [("connection", connection.role.rawValue)],
                lines: HistogramLines(Histogram.coarseBuckets)
            )
        }
    }
}
