import KeyStore
import Telemetry

// A store that several gateways share. The families are there for every store, so that alerts and
// dashboards name nothing that does not exist; where the store is a file they have no samples.
extension StoreFacts {
    func writeWaiting(into out: inout Exposition) {
        out.metric("store_waiting", type: "gauge", help: "Uses and look-ups that wait for it.")
        out.sample("store_waiting", [], waiting)
        out.metric(
            "store_turned_away_total",
            type: "counter",
            help: "Uses, look-ups and enrolments that found no room to wait."
        )
        out.sample("store_turned_away_total", [], turnedAway)
        out.metric(
            "key_look_ups_total",
            type: "counter",
            help: "Keys that were not in memory and looked up, by whether the store had them."
        )
        out.sample("key_look_ups_total", [("found", "yes")], foundLookUps)
        let absent = lookUps >= foundLookUps ? lookUps - foundLookUps : 0
        out.sample("key_look_ups_total", [("found", "no")], absent)
    }

    func writeDatabase(into out: inout Exposition) {
        let connections = database?.connections ?? []
        func family(
            _ name: String,
            _ type: String,
            _ help: String,
            _ value: (DatabaseStatistics.Connection) -> UInt64
        ) {
            out.metric(name, type: type, help: help)
            for connection in connections {
                out.sample(name, [("connection", connection.role.rawValue)], value(connection))
            }
        }
        family(
            "database_connected",
            "gauge",
            "Whether there is a connection that nobody has ended."
        ) { $0.isConnected ? 1 : 0 }
        family("database_connections_total", "counter", "Connections that were made.") { $0.made }
        family(
            "database_connections_lost_total",
            "counter",
            "Connections that were lost, or left since the server takes no writes."
        ) { $0.lost }
        family(
            "database_connect_failures_total",
            "counter",
            "Tries that came to no connection."
        ) { $0.failures }
        out.metric(
            "database_retries_total",
            type: "counter",
            help: "Transactions that met others at the same rows and were asked once more."
        )
        if let retries = database?.retries {
            out.sample(
                "database_retries_total",
                [("cause", "serialization")],
                retries.serialization
            )
            out.sample("database_retries_total", [("cause", "deadlock")], retries.deadlock)
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
                shown: Histogram.coarseBuckets
            )
        }
    }
}
