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
    /// `check`: default none.
    package var check: CheckSettings?

    package init() {}
}
