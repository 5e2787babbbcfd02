/// How the requests for an origin are shared by its servers.
package struct BalancingSettings: Hashable, Sendable {
    package enum Balance: String, CaseIterable, Sendable {
        /// In turn, by weight.
        case roundRobin = "round-robin"
        /// The server with the fewest requests under way, by weight.
        case leastRequests = "least-requests"
        /// The same server for the same key; by the client's address where no key has proven the
        /// request.
        case hashKey = "hash-key"
        /// The same server for the same client address.
        case hashAddress = "hash-address"
    }

    /// `balance`: default round-robin.
    package var balance = Balance.roundRobin
    /// `slow_start`: in which a server that came back gets its share step by step. Default 0s.
    package var slowStart: Duration = .zero
    package var ejection = EjectionSettings()
    /// `resolve_interval`: from one look-up of the servers' names to the next. Default 30s.
    package var resolveInterval: Duration = .seconds(30)
    /// `total_timeout`: from the first connect for a request to the head of its response, over all
    /// tries; 0s (the default) for no limit beyond those of each try.
    package var totalTimeout: Duration = .zero
    package var retries = RetrySettings()
    package var queue = QueueSettings()
    /// `check`: default none.
    package var check: CheckSettings?

    package init() {}
}
