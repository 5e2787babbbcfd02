import HTTPWire
import Rules
import Verification

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
struct Flow: ~Copyable {
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
    static let behindHeadMax: UInt64 = 1024

    /// What the request is and asks, taken from its head once.
    let facts: RequestFacts
    /// Its rule: the fallback until one was found, and for a service that judges nothing; for a
    /// service that judges its requests, its own.
    var rule: Rule
    /// What was found out about it.
    var judgement = Judgement.none
    /// What an admitted request leads to.
    var purpose = Purpose.relay
    /// Whether nothing that streamed content brings can change the verdict any more.
    var isEndJudged = false
    /// Bytes of content that have come.
    var contentBytes: UInt64 = 0
    var state = State.arriving

    /// What an admitted request leads to.
    enum Purpose {
        /// It goes to an origin, whose response goes to the client.
        case relay
        /// The proxy that has asked is told that it may forward the request.
        case decision
    }

    /// - fallback: the rule that stands for requests that were not routed.
    init(_ facts: RequestFacts, fallback: Rule) {
        self.facts = facts
        rule = fallback
    }
}

// What the driver and the streams ask.
extension Flow {
    /// Whether the request has ended. What arrives later finds it over.
    var isOver: Bool {
        if case .over = state { true } else { false }
    }

    /// Whether content is to be read from the client now.
    var takesContent: Bool {
        switch state {
        case .collecting, .holding: true
        case .sending(let leg), .responding(let leg, _): leg.takesContent
        case .arriving, .locating, .calling, .serving, .routing, .taking, .judging,
            .awaitingCommit, .awaitingDevice, .connecting, .skipping, .over:
            false
        }
    }

    /// Whether the client is to send content, now or when the server takes it.
    var awaitsContent: Bool {
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
    var passesTrailers: Bool {
        guard case .responding(_, let response) = state else { return false }
        if case .pass = response.trailers { return true }
        return false
    }

    /// Whether the client has sent all of the request.
    var isUploaded: Bool {
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
    var hasResponse: Bool {
        if case .responding = state { true } else { false }
    }

    /// What an origin was given, as far as it is known now.
    var delivery: Delivery {
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
        preconditionFailure("Flow: \(event) while \(state)")
    }
}

// From the head to its rule or service.
extension Flow {
    /// The head was found, and can be read.
    mutating func headRead() -> Action {
        switch state {
        case .arriving: return .countRequest
        case .locating, .calling, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("headRead")
        }
    }

    /// The head can't be read. Its framing is not to be trusted: the connection ends.
    mutating func headMalformed(_ reason: Malformed.Reason) -> Action {
        switch state {
        case .arriving: return answerLast(.malformed(reason), .none)
        case .locating, .calling, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("headMalformed")
        }
    }

    /// The address has room for the request.
    mutating func requestCounted() -> Action {
        switch state {
        case .arriving:
            state = .locating
            return .locate
        case .locating, .calling, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("requestCounted")
        }
    }

    /// The address is over its limit of requests or of calls.
    mutating func addressThrottled() -> Action {
        switch state {
        case .arriving, .calling: return answer(.declined(.addressThrottled))
        case .locating, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("addressThrottled")
        }
    }

    /// It is known who is asked.
    mutating func located(_ destination: Destination) -> Action {
        switch state {
        case .locating: break
        case .arriving, .calling, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("located")
        }
        switch destination {
        case .loop: return answer(.loopDetected)
        case .lastHop: return answer(.lastHop)
        case .origin:
            state = .routing
            return .findRule
        case .decision:
            precondition(!facts.hasContent, "Flow: a question for a decision has no content")
            purpose = .decision
            state = .routing
            return .findRule
        case .service(let demands):
            guard demands.isCharged else { return call(demands) }
            state = .calling(demands)
            return .countCall
        }
    }

    /// A path or method of the gateway's own to which no service answers.
    mutating func serviceRefused() -> Action {
        switch state {
        case .locating: return answer(.service)
        case .arriving, .calling, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("serviceRefused")
        }
    }

    /// The address has room for the call.
    mutating func callCounted() -> Action {
        switch state {
        case .calling(let demands): return call(demands)
        case .arriving, .locating, .collecting, .serving, .routing, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("callCounted")
        }
    }

    /// Judges a call that needs it, collects its content, within the service's limit, or asks the
    /// service at once.
    private mutating func call(_ demands: ServiceDemands) -> Action {
        if let judged = demands.rule {
            precondition(!facts.hasContent, "Flow: a call that is judged has no content")
            rule = judged
            return take(up: .withHead)
        }
        if case .length(let length) = facts.framing, length > demands.contentMax {
            return answer(.declined(.contentTooLarge))
        }
        guard facts.hasContent else {
            state = .serving
            return .serve
        }
        state = .collecting(demands)
        return .collect
    }

    /// The rule was found.
    ///
    /// - whole: how much content there is, where all of it came with the head and its length was
    ///   known.
    mutating func routed(to found: Rule, whole: UInt64?) -> Action {
        switch state {
        case .routing: break
        case .arriving, .locating, .calling, .collecting, .serving, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("routed")
        }
        rule = found
        guard facts.hasContent else { return take(up: .withHead) }
        guard let whole, let taking = taking(whole) else { return take(up: .unread) }
        switch taking {
        case .behindHead: state = .taking(.withHead)
        case .held: state = .taking(.held)
        }
        return .takeContent(taking)
    }

    /// The rule was found, and the request can't be forwarded: its path can be read in several
    /// ways, or it names a field that the rule signs or reads among those that end here.
    mutating func unroutable(_ found: Rule, _ reason: Malformed.Reason) -> Action {
        switch state {
        case .routing:
            rule = found
            // The connection is the asking proxy's, and carries the questions of others.
            if case .decision = purpose { return answer(.malformed(reason)) }
            return answerLast(.malformed(reason), .none)
        case .arriving, .locating, .calling, .collecting, .serving, .taking, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("unroutable")
        }
    }

    /// Content that came whole with the head was taken off the client's stream.
    mutating func contentTaken(_ count: UInt64) -> Action {
        switch state {
        case .taking(let content):
            contentBytes = count
            return take(up: content)
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .judging, .holding,
            .awaitingCommit, .awaitingDevice, .connecting, .sending, .responding, .skipping, .over:
            impossible("contentTaken")
        }
    }

    /// Content that came whole with its head is judged where it is, and goes to the origin together
    /// with the head.
    private func taking(_ whole: UInt64) -> Taking? {
        if let limit = rule.body.limit, whole > UInt64(limit.rawValue) { return nil }
        if whole <= Self.behindHeadMax { return .behindHead(whole) }
        if case .held = rule.body { return .held(whole) }
        return nil
    }

    /// Judges, forwards or denies, as the rule's mode says.
    private mutating func take(up content: Content) -> Action {
        switch rule.mode {
        case .off:
            if case .decision = purpose { return answer(.allowed) }
            state = .connecting(Approach(content: content, attempt: .first, told: .anything))
            return .admitUnjudged
        case .deny:
            state = .judging(content)
            return decide(Ruling(.refuse(.noRule)), .enforced, content)
        case .observe, .enforce:
            state = .judging(content)
            return .judgeHead
        }
    }
}

/// Who is asked, as the head says.
enum Destination: Equatable, Sendable {
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
struct ServiceDemands: Sendable {
    /// The most content in bytes; more is refused before it is read, where its length is known.
    let contentMax: UInt64
    /// Whether its calls count against the limit of the client's address.
    let isCharged: Bool
    /// By which its requests are judged before it is asked; `nil` for a service that anybody may
    /// call. Such a request has no content.
    let rule: Rule?

    init(contentMax: UInt64, isCharged: Bool, rule: Rule? = nil) {
        self.contentMax = contentMax
        self.isCharged = isCharged
        self.rule = rule
    }
}

extension ServiceDemands: Equatable {
    static func == (left: ServiceDemands, right: ServiceDemands) -> Bool {
        left.contentMax == right.contentMax && left.isCharged == right.isCharged
            && left.rule === right.rule
    }
}
