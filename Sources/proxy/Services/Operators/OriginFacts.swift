import Cryptography
import Encodings
import Telemetry

/// The state of an origin and its servers.
package struct OriginFacts: Sendable {
    /// One address of a server.
    package struct Server: Sendable {
        package var name: String
        /// The IP address of a name; otherwise as in the configuration. Empty for a name that has
        /// no address.
        package var address: String
        /// A word: `up`, `unreachable`, `silent`, `ejected`, `down`, `drained`, or `unknown` where
        /// the name has no address.
        package var state: String
        /// Whether the server has no fault, except for faults that a client can cause.
        package var canServe: Bool
        package var weight = 1
        package var isBackup = false
        package var active = 0
        /// Its connections and their limit, where there is a limit.
        package var connections: (count: Int, max: Int)?
        package var requests: UInt64 = 0
        /// The sum of the times that they waited for the first bytes of their responses.
        package var waited = Duration.zero
        package var failures: UInt64 = 0
        package var ejections: UInt64 = 0
        package var lastFailure: Note?
        package var lastCheck: Note?

        package init(name: String, address: String, state: String, canServe: Bool) {
            self.name = name
            self.address = address
            self.state = state
            self.canServe = canServe
        }

        /// A server whose name has no address.
        package init(unknown name: String) {
            self.init(name: name, address: "", state: "unknown", canServe: false)
        }
    }

    /// An event, in a word, and its time.
    package struct Note: Sendable {
        package let word: String
        /// Milliseconds since 1970.
        package let at: Int64

        package init(word: String, at: Int64) {
            self.word = word
            self.at = at
        }
    }

    package var name: String
    package var servers: [Server]
    /// The number of requests that wait for a connection; `nil` where no server has a limit.
    package var waiting: Int?

    package init(name: String, servers: [Server]) {
        self.name = name
        self.servers = servers
    }

    /// Whether no server can serve. An origin whose servers have no address does not count.
    package var isOut: Bool { isKnown && !servers.contains(where: \.canServe) }

    /// Whether a server has an address.
    var isKnown: Bool { servers.contains { !$0.address.isEmpty } }
}

extension [OriginFacts] {
    /// One line for each address of a server, as `portcullis origins list` prints it.
    var lines: String {
        var text = ""
        for origin in self {
            for server in origin.servers { text += server.line(of: origin) + "\n" }
        }
        return text
    }

    /// Writes it as a member of a document.
    ///
    /// - more: writes further members of an origin.
    func write(into out: inout JSONWriter, more: (inout JSONWriter, OriginFacts) -> Void) {
        out.objects("origins", of: self) { out, origin in
            out.member("name", origin.name)
            if let waiting = origin.waiting { out.member("requests_waiting", waiting) }
            more(&out, origin)
            out.objects("servers", of: origin.servers) { out, server in server.write(into: &out) }
        }
    }

    func write(into out: inout Exposition) {
        typealias Value = (OriginFacts.Server) -> UInt64
        let metrics: [(name: String, type: String, help: String, value: Value)] = [
            (
                "origin_server_up", "gauge", "Whether nothing speaks against the server.",
                { $0.state == "up" ? 1 : 0 }
            ),
            (
                "origin_server_requests_active", "gauge", "Requests that the server has.",
                { UInt64($0.active) }
            ),
            (
                "origin_server_requests_total", "counter", "Requests that the server has had.",
                \.requests
            ),
            (
                "origin_server_failures_total", "counter",
                "Requests and connects that failed at the server.", \.failures
            ),
            (
                "origin_server_ejections_total", "counter",
                "Times the server was passed over because requests failed in a row.", \.ejections
            ),
        ]
        for metric in metrics {
            out.metric(metric.name, type: metric.type, help: metric.help)
            for origin in self {
                for server in origin.servers {
                    out.sample(metric.name, labels: server.labels(of: origin), metric.value(server))
                }
            }
        }
        writeWaits(into: &out)
        writeLimits(into: &out)
    }

    private func writeWaits(into out: inout Exposition) {
        let name = "origin_server_response_seconds_total"
        out.metric(
            name,
            type: "counter",
            help: "Time that requests waited for the first byte of their response, added up."
        )
        for origin in self {
            for server in origin.servers {
                let value = Double(server.waited.nanosecondCount) / 1e9
                out.sample(name, labels: server.labels(of: origin), value)
            }
        }
    }

    /// Writes the metrics of servers whose connections are limited. Where none is, the families
    /// have no samples.
    private func writeLimits(into out: inout Exposition) {
        let limited = filter { $0.waiting != nil }
        typealias Value = ((count: Int, max: Int)) -> Int
        let metrics: [(name: String, help: String, value: Value)] = [
            ("origin_server_connections", "Connections to the server, where limited.", \.count),
            ("origin_server_connections_max", "The most that there may be.", \.max),
        ]
        for metric in metrics {
            out.metric(metric.name, type: "gauge", help: metric.help)
            for origin in limited {
                for server in origin.servers {
                    guard let connections = server.connections else { continue }
                    out.sample(
                        metric.name,
                        labels: server.labels(of: origin),
                        UInt64(Swift.max(metric.value(connections), 0))
                    )
                }
            }
        }
        out.metric(
            "origin_requests_waiting",
            type: "gauge",
            help: "Requests that wait for a connection to a server."
        )
        for origin in limited {
            let labels = [("origin", origin.name)]
            out.sample(
                "origin_requests_waiting",
                labels: labels,
                UInt64(Swift.max(origin.waiting ?? 0, 0))
            )
        }
    }
}

extension OriginFacts.Server {
    fileprivate func labels(of origin: OriginFacts) -> [(String, String)] {
        [("origin", origin.name), ("server", name), ("address", address)]
    }

    fileprivate func line(of origin: OriginFacts) -> String {
        func text(_ note: OriginFacts.Note?) -> String {
            guard let note else { return "never" }
            return "\(note.word) at \(UnixTime(seconds: note.at / 1000).iso8601)"
        }
        let number = address.isEmpty ? "no address" : address
        let place = name == address ? name : "\(name) (\(number))"
        var limit: [String] = []
        if let connections {
            limit = [
                "\(connections.count) of \(connections.max) connections",
                "\(origin.waiting ?? 0) waiting",
            ]
        }
        let columns = [
            origin.name, place, state + (isBackup ? ", backup" : ""), "weight \(weight)",
            "\(active) active", "\(requests) served", "\(failures) failed",
            "\(ejections) ejections", "last failure: \(text(lastFailure))",
            "last check: \(text(lastCheck))",
        ]
        return (columns + limit).joined(separator: "\t")
    }

    fileprivate func write(into out: inout JSONWriter) {
        out.member("server", name)
        out.member("address", address)
        out.member("state", state)
        out.member("weight", weight)
        out.member("backup", isBackup)
        out.member("requests_active", active)
        if let connections {
            out.member("connections", connections.count)
            out.member("max_connections", connections.max)
        }
        out.member("requests", requests)
        out.member("failures", failures)
        out.member("ejections", ejections)
        Self.write(lastFailure, "last_failure", into: &out)
        Self.write(lastCheck, "last_check", into: &out)
    }

    private static func write(
        _ note: OriginFacts.Note?,
        _ name: String,
        into out: inout JSONWriter
    ) {
        out.member(name, note?.word)
        out.member(name + "_at", note.map { UnixTime(seconds: $0.at / 1000).iso8601 })
    }
}
