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

    package init() {}
}
