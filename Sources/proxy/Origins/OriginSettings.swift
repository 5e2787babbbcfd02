package import HTTPWire

/// One origin: its servers, and how they are used.
package struct OriginSettings: Sendable {
    package let name: String
    package var servers: [OriginServerSettings]
    package var balance = Balance.roundRobin
    /// Milliseconds in which a server that came back gets its share step by step; 0 for at once.
    package var slowStart: UInt64 = 0
    package var ejection = Ejection()
    /// `nil` where servers are not checked.
    package var check: ServerCheck?
    /// Milliseconds from a request's first connect to the head of its response, over all tries.
    package var totalTimeout: UInt64 = .max
    package var retries = RetryRule()
    /// How requests wait while all servers have as many connections as they may.
    package let queue: QueueRule
    /// Shared by the lanes.
    package let state: OriginState
    /// What the origin gets as Host instead of what the client sent.
    package var host: [UInt8]?
    /// What it gets of the fields that are deleted by default.
    package var keptFields = KeptFields()
    /// What its servers are told before the first request on a connection.
    package var preface = OriginPreface.none
    /// Milliseconds for a connect to a server. Then the next server, at last 504.
    package var connectTimeout: UInt64
    /// Milliseconds from the end of a request to the head of its response. Then 504.
    package var firstByteTimeout: UInt64

    package init(
        name: String,
        servers: [OriginServerSettings],
        connectTimeout: UInt64,
        firstByteTimeout: UInt64,
        queue: QueueRule = QueueRule(),
        state: OriginState = OriginState()
    ) {
        self.name = name
        self.servers = servers
        self.connectTimeout = connectTimeout
        self.firstByteTimeout = firstByteTimeout
        self.queue = queue
        self.state = state
        take()
    }

    /// Tells the state which servers it has.
    func take() {
        let limits = servers.compactMap { server in
            server.connectionsMax.map { (server.state.number, $0) }
        }
        state.take(
            servers.map(\.state),
            limits: Dictionary(limits) { first, _ in first },
            queueMax: queue.max
        )
    }
}
