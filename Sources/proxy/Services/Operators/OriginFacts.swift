import JSONText
import Telemetry

/// How an origin and its servers stand.
package struct OriginFacts: Sendable {
    /// One address of a server.
    package struct Server: Sendable {
        /// As the configuration has it.
        package var name: String
        /// The IP address of a name; as the configuration has it otherwise.
        package var address: String
        /// A word: `up`, `unreachable`, `silent`, `ejected`, `down`, `drained`.
        package var state: String
        /// Whether nothing that a client causes speaks against it.
        package var canServe: Bool
        package var weight = 1
        package var isBackup = false
        package var active = 0
        /// Where they are limited.
        package var connections: (count: Int, max: Int)?
        package var requests: UInt64 = 0
        /// How long these waited for the first bytes of their responses, all together.
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
    }

    /// What happened, in a word, and when.
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
    /// How many requests wait for a connection; `nil` where no server has a limit.
    package var waiting: Int?

    package init(name: String, servers: [Server]) {
        self.name = name
        self.servers = servers
    }

    /// Whether no server can serve. An origin whose servers have no address is not meant.
    package var isOut: Bool { !servers.isEmpty && !servers.contains(where: \.canServe) }
}
