/// Who is asked, as the head says.
package enum Destination: Equatable, Sendable {
    /// An origin, by the rules.
    case origin
    /// A service of the gateway.
    case service(ServiceDemands)
    /// The gateway itself, once more.
    case loop
    /// Nobody behind the gateway: an OPTIONS request that may take no more hops.
    case lastHop
}

/// What a service of the gateway asks of a request.
package struct ServiceDemands: Equatable, Sendable {
    /// The most content in bytes; more is refused before it is read, where its length is known.
    package let contentMax: UInt64
    /// Whether its calls count against the limit of the client's address.
    package let isCharged: Bool

    package init(contentMax: UInt64, isCharged: Bool) {
        self.contentMax = contentMax
        self.isCharged = isCharged
    }
}
