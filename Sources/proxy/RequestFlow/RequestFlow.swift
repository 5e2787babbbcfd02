package import Rules

/// One request, from its head to the end of its response, as a pure state machine.
///
///     arriving → locating ─┬→ calling → collecting → serving ───────────────┐
///                          │    └→ judging ─┬──────→ serving ───────────────┤
///                          │                └→ awaitingCommit → serving ────┤
///                          └→ routing → taking → judging ⇄ holding          │
///                                          │        ├→ awaitingCommit ─┐    │
///                                          │        ├→ awaitingDevice ◀┤    │
///                                          ▼        ▼        │         │    │
///                                       connecting ◀─────────┴─────────┘    │
///                                        ▲      ▼                           │
///                                  retry └── sending ──→ responding ──┐     │
///                                               └─→ (tunnel) ─────────┤     │
///                                                                     ▼     ▼
///     every state before `responding` ──→ (skipping) ──→ answered ──→  over
///
/// A request that another proxy asks about is answered where it would go to `connecting`.
///
/// Every event is a method. It returns the action that follows, and its driver performs that and
/// decides nothing: the proxy's `Exchange`, or a test's table. The machine knows what a request
/// means. How it looks on a connection (framing, `100 Continue`, whether the connection goes on) is
/// the business of the streams on both sides, and every byte of content stays with the driver.
///
/// The events are in files of their own: `+Head`, `+Verdict`, `+Content`, `+Origin`, `+Response`,
/// `+Ending`. An event that can't come in a state stops the program and names what was assumed. An
/// event that was on its way when the request ended is *late*, and nothing follows from it.
package struct RequestFlow: ~Copyable {
    /// Where the request is.
    enum State {
        /// The head has come; the address may be over its limit of requests.
        /// Leaves to `locating`, `skipping`, `over`.
        case arriving
        /// It is found out who is asked: an origin, a service of the gateway, or nobody.
        /// Leaves to `calling`, `collecting`, `judging`, `serving`, `routing`, `skipping`, `over`.
        case locating
        /// A service is asked; the address may be over its limit of calls.
        /// Leaves to `collecting`, `judging`, `serving`, `skipping`, `over`.
        case calling(ServiceDemands)
        /// The service's content is on its way. Leaves to `serving`, `over`.
        case collecting(ServiceDemands)
        /// The service is at work on its answer, for a bounded time. Leaves to `over`.
        case serving
        /// The rule is looked for. Leaves to `taking`, `judging`, `connecting`, `skipping`, `over`.
        case routing
        /// Content that came whole with the head is taken off the client's stream.
        /// Leaves to `judging`, `connecting`, `over`.
        case taking(Content)
        /// The verdict is asked for: about the head, or about the content that was held.
        /// Leaves to `holding`, `awaitingCommit`, `awaitingDevice`, `connecting`, `serving`,
        /// `skipping`, `over`.
        case judging(Content)
        /// Content is read and held until all of it can be judged, or released unjudged.
        /// Leaves to `judging`, `connecting`, `over`.
        case holding(Holding)
        /// The verdict allows the request, if the commit that it waits for does; or the store is
        /// asked for its key, and all is judged anew when it has answered.
        /// Leaves to `judging`, `awaitingDevice`, `connecting`, `serving`, `skipping`, `over`.
        case awaitingCommit(Content)
        /// All else holds, and it is asked what Apple says of the device.
        /// Leaves to `connecting`, `skipping`, `over`.
        case awaitingDevice(Content)
        /// A server is being found. Leaves to `sending`, `skipping`, `over`.
        case connecting(Approach)
        /// A server is given the request. Leaves to `connecting`, `responding`, `over`.
        case sending(Leg)
        /// The response goes to the client, and maybe the rest of the request to the server.
        /// Leaves to `over`.
        case responding(Leg, Response)
        /// The gateway will answer; content that was not read is skipped if all of it is here, so
        /// that the connection can go on. Leaves to `over`.
        case skipping(Reply)
        /// The request has ended, and what the origin got of it is known. Every event is late.
        case over(Delivery)
    }

    /// The most content that goes to the origin in one piece with the head, in bytes.
    package static let behindHeadMax: UInt64 = 1024

    /// What the request is and asks, taken from its head once.
    package let facts: RequestFacts
    /// Its rule: the fallback until one was found, and for a service that judges nothing; for a
    /// service that judges its requests, its own.
    package internal(set) var rule: Rule
    /// What was found out about it.
    package internal(set) var judgement = Judgement.none
    /// What an admitted request leads to.
    var purpose = Purpose.relay
    /// Whether nothing that streamed content brings can change the verdict any more.
    var isEndJudged = false
    /// Bytes of content that have come.
    package internal(set) var contentBytes: UInt64 = 0
    var state = State.arriving

    /// What an admitted request leads to.
    enum Purpose {
        /// It goes to an origin, whose response goes to the client.
        case relay
        /// The proxy that has asked is told that it may forward the request.
        case decision
    }

    /// - fallback: the rule that stands for requests that were not routed.
    package init(_ facts: RequestFacts, fallback: Rule) {
        self.facts = facts
        rule = fallback
    }
}

// What the driver and the streams ask.
extension RequestFlow {
    /// Whether the request has ended. What arrives later finds it over.
    package var isOver: Bool {
        if case .over = state { true } else { false }
    }

    /// Whether content is to be read from the client now.
    package var takesContent: Bool {
        switch state {
        case .collecting, .holding: true
        case .sending(let leg), .responding(let leg, _): leg.takesContent
        case .arriving, .locating, .calling, .serving, .routing, .taking, .judging,
            .awaitingCommit, .awaitingDevice, .connecting, .skipping, .over:
            false
        }
    }

    /// Whether the client is to send content, now or when the server takes it.
    package var awaitsContent: Bool {
        switch state {
        case .collecting, .holding: true
        case .sending(let leg), .responding(let leg, _):
            if case .streaming = leg.upload { true } else { false }
        case .arriving, .locating, .calling, .serving, .routing, .taking, .judging,
            .awaitingCommit, .awaitingDevice, .connecting, .skipping, .over:
            false
        }
    }

    /// Whether the trailers of the response are the client's.
    package var passesTrailers: Bool {
        guard case .responding(_, let response) = state else { return false }
        if case .pass = response.trailers { return true }
        return false
    }

    /// Whether the client has sent all of the request.
    package var isUploaded: Bool {
        switch state {
        case .arriving, .locating, .calling, .routing: !facts.hasContent
        case .taking(let content), .judging(let content), .awaitingCommit(let content),
            .awaitingDevice(let content):
            content.isHere
        case .connecting(let approach): approach.content.isHere
        case .collecting, .holding: false
        case .serving: true
        case .sending(let leg), .responding(let leg, _):
            if case .given = leg.upload { true } else { false }
        case .skipping, .over: false
        }
    }

    /// Whether the response of an origin has begun.
    package var hasResponse: Bool {
        if case .responding = state { true } else { false }
    }

    /// What an origin was given, as far as it is known now.
    package var delivery: Delivery {
        switch state {
        case .sending(let leg), .responding(let leg, _): leg.delivery
        case .over(let delivery): delivery
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .awaitingCommit, .awaitingDevice, .connecting, .skipping:
            .nothing
        }
    }

    /// Whose fault it is that an event came in a state that does not have it: ours.
    func impossible(_ event: StaticString) -> Never {
        preconditionFailure("RequestFlow: \(event) while \(state)")
    }
}
