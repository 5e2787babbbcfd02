package import Rules

/// Who is asked, as the head says.
package enum Destination: Equatable, Sendable {
    /// An origin, by the rules.
    case origin
    /// A service of the gateway.
    case service(ServiceDemands)
    /// An origin, by the rules, and another proxy forwards to it: that proxy asks whether it may.
    /// The question has no content.
    case decision
    /// The gateway itself, once more.
    case loop
    /// Nobody behind the gateway: an OPTIONS request that may take no more hops.
    case lastHop
}

/// What a service of the gateway asks of a request.
package struct ServiceDemands: Sendable {
    /// The most content in bytes; more is refused before it is read, where its length is known.
    package let contentMax: UInt64
    /// Whether its calls count against the limit of the client's address.
    package let isCharged: Bool
    /// By which its requests are judged before it is asked; `nil` for a service that anybody may
    /// call. Such a request has no content.
    package let rule: Rule?

    package init(contentMax: UInt64, isCharged: Bool, rule: Rule? = nil) {
        self.contentMax = contentMax
        self.isCharged = isCharged
        self.rule = rule
    }
}

extension ServiceDemands: Equatable {
    package static func == (left: ServiceDemands, right: ServiceDemands) -> Bool {
        left.contentMax == right.contentMax && left.isCharged == right.isCharged
            && left.rule === right.rule
    }
}
