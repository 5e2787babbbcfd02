/// How the servers of an origin share its requests.
package enum Balance: Sendable, Equatable {
    /// In turn, by weight. Each lane has turns of its own.
    case roundRobin
    /// The server with the fewest requests under way on all lanes, by weight.
    case leastRequests
    /// The same server for the same subject, as long as it is up.
    case hash(Subject)

    /// Whose requests go to the same server.
    package enum Subject: Sendable {
        /// A key that has proven the request; the client's address where none has.
        case key
        /// The client's address.
        case address
    }
}
