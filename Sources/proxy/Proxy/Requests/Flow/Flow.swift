import HTTPWire
import Rules
import Verification

/// One admitted request, from its verdict to the end of its response, as a pure state machine.
///
///     judging ⇄ holding           collecting → serving ──→ over
///      │   └→ awaitingCommit ─┬──────────────────┘
///      │        │     └───────│→ awaitingDevice
///      ▼        ▼             ▼        │
///     connecting ◀─────────────────────┘
///      ▲      ▼
///      └── sending ──→ responding ──→ over
///
/// Before it, admission counts the request, finds out what it leads to and looks for its rule: a
/// function, since nothing waits there. Every state but `over` can also end with the gateway's own
/// answer or with the client. A request that another proxy asks about is answered where it would go
/// to `connecting`.
///
/// Every event is a method. It returns the action that follows, and its driver performs that and
/// decides nothing: the proxy's `Exchange`, or a test's table. The machine knows what a request
/// means. How it looks on a connection (framing, `100 Continue`, whether the connection goes on) is
/// the business of the streams on both sides, and every byte of content stays with the driver.
///
/// An event that can't come in a state stops the program and names what was assumed. An event that
/// was on its way when the request ended is *late*, and nothing follows from it.
struct Flow: ~Copyable {
    /// Where the request is.
    enum State {
        /// The verdict is asked for: about the head, or about the content that was held.
        /// Leaves to `collecting`, `holding`, `awaitingCommit`, `awaitingDevice`, `connecting`,
        /// `serving`, `over`.
        case judging(Content)
        /// The content for a service is on its way. Leaves to `serving`, `over`.
        case collecting(contentMax: UInt64)
        /// Content is read and held until all of it can be judged, or released unjudged.
        /// Leaves to `judging`, `connecting`, `over`.
        case holding(Content)
        /// The service is at work on its answer, for a bounded time. Leaves to `over`.
        case serving
        /// The verdict allows the request, if the commit that it waits for does; or the store is
        /// asked for its key, and the request is judged again when it has answered.
        /// Leaves to `judging`, `awaitingDevice`, `connecting`, `serving`, `over`.
        case awaitingCommit(Content)
        /// All else holds, and Apple is asked about the device. Leaves to `connecting`, `over`.
        case awaitingDevice(Content)
        /// A server is being found. Leaves to `sending`, `over`.
        case connecting(Approach)
        /// A server is given the request. Leaves to `connecting`, `responding`, `over`.
        case sending(Leg)
        /// The response goes to the client, and maybe the rest of the request to the server.
        /// Leaves to `over`.
        case responding(Leg, Response)
        /// The request has ended, and what the origin got of it is known. Every event is late.
        case over(Delivery)
    }

    /// The most content that goes to the origin in one piece with the head, in bytes.
    static let behindHeadMax: UInt64 = 1024

    /// What the request is and asks, taken from its head once.
    let facts: RequestFacts
    /// What it leads to once it is admitted.
    private(set) var purpose = Purpose.relay
    /// Its rule: the fallback until one was found, and for a service that judges nothing; for a
    /// service that judges its requests, its own.
    private(set) var rule: Rule
    /// What was found out about it.
    var judgement = Judgement.none
    /// Whether its verdict was counted.
    var verdictCount = VerdictCount.none
    /// Whether the store was asked for its key. It is asked once for a request.
    var hasSoughtKey = false
    /// Whether nothing that streamed content brings can change the verdict any more.
    var isEndJudged = false
    /// Bytes of content that have come.
    var contentBytes: UInt64 = 0
    var state: State

    /// What an admitted request leads to.
    enum Purpose: Equatable {
        /// It goes to an origin, whose response goes to the client.
        case relay
        /// A proxy has asked about it, and may forward it.
        case decision(DecisionForm)
        /// A service of the gateway answers it.
        case service
    }

    /// Whether a verdict was counted.
    enum VerdictCount {
        /// It was not, and need not be.
        case none
        /// It will be when it is final: content may change it.
        case due
        case done
    }

    /// - fallback: the rule that stands for requests that were not routed.
    init(_ facts: RequestFacts, fallback: Rule) {
        self.facts = facts
        rule = fallback
        state = .judging(facts.hasContent ? .unread : .withHead)
    }
}

// What admission has found.
extension Flow {
    /// A proxy asks whether it may forward the request.
    mutating func decides(_ form: DecisionForm) {
        precondition(!facts.hasContent, "Flow: a question for a decision has no content")
        purpose = .decision(form)
    }

    /// The request is answered before it is judged.
    mutating func declined(_ reply: Reply) -> Action {
        guard case .judging = state else { impossible("declined") }
        return answer(reply)
    }

    /// The request can't be read, or not in one way. Its framing is not to be trusted: the
    /// connection ends, but for one of a proxy that asks, which carries requests of others.
    mutating func malformed(_ reason: Malformed.Reason) -> Action {
        guard case .judging = state else { impossible("malformed") }
        if case .decision = purpose { return answer(.malformed(reason)) }
        return answerLast(.malformed(reason), .none)
    }

    /// Where content is judged that came whole with its head: where it is, and goes to the origin
    /// together with the head, or held. Other content stays with the client.
    static func place(ofWhole count: UInt64, by rule: Rule) -> Content {
        if let limit = rule.body.limit, count > UInt64(limit.rawValue) { return .unread }
        if count <= behindHeadMax { return .withHead }
        if case .held = rule.body { return .held }
        return .unread
    }

    /// The rule was found.
    mutating func routed(to found: Rule) {
        guard case .judging = state else { impossible("routed") }
        rule = found
    }

    /// Content that came whole with the head was taken off the client's stream.
    mutating func took(_ count: UInt64, as content: Content) {
        guard case .judging(.unread) = state else { impossible("took") }
        contentBytes = count
        state = .judging(content)
    }

    /// The rule judges nothing.
    mutating func unjudged() -> Action {
        guard case .judging(let content) = state else { impossible("unjudged") }
        if case .decision = purpose { return answer(.allowed) }
        state = .connecting(Approach(content: content, attempt: .first, told: .anything))
        return .connect(.first)
    }

    /// A service is asked that judges nothing.
    mutating func asked(contentMax: UInt64) -> Action {
        guard case .judging = state else { impossible("asked") }
        purpose = .service
        if case .length(let length) = facts.framing, length > contentMax {
            return answer(.declined(.contentTooLarge))
        }
        guard facts.hasContent else {
            state = .serving
            return .serve
        }
        state = .collecting(contentMax: contentMax)
        return .collect
    }

    /// A service is asked that judges its requests, by this rule.
    mutating func asked(by judged: Rule) {
        precondition(!facts.hasContent, "Flow: a call that is judged has no content")
        purpose = .service
        routed(to: judged)
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
        if case .collecting = state { return true }
        if case .holding = state { return true }
        return leg?.takesContent ?? false
    }

    /// Whether the client is to send content, now or when the server takes it.
    var awaitsContent: Bool {
        if case .collecting = state { return true }
        if case .holding = state { return true }
        if case .streaming? = leg?.upload { return true }
        return false
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
        case .judging(let content), .awaitingCommit(let content), .awaitingDevice(let content):
            content.isHere
        case .connecting(let approach): approach.content.isHere
        case .collecting, .holding: false
        case .serving: true
        case .sending(let leg), .responding(let leg, _):
            if case .given = leg.upload { true } else { false }
        case .over: false
        }
    }

    /// Whether content that was held goes on unjudged, with the framing that the client uses.
    var isReleased: Bool {
        guard case .connecting(let approach) = state, case .released = approach.content else {
            return false
        }
        return true
    }

    /// Whether the store is to be asked for the key that the ruling names, before anything else.
    func seeksKey(_ ruling: Ruling) -> Bool { ruling.awaitsKey && !hasSoughtKey }

    /// Marks the verdict as counted.
    ///
    /// - Returns: whether it is to be counted now, as it stands.
    mutating func countsVerdict() -> Bool {
        guard verdictCount != .done, judgement.verdict != nil else { return false }
        verdictCount = .done
        return true
    }

    /// Whether the response of an origin has begun.
    var hasResponse: Bool {
        if case .responding = state { true } else { false }
    }

    /// What an origin was given, as far as it is known now.
    var delivery: Delivery {
        if case .over(let delivery) = state { return delivery }
        return leg?.delivery ?? .nothing
    }

    /// The request on its way to a server, also while its response comes; `nil` where there is
    /// none.
    var leg: Leg? {
        switch state {
        case .sending(let leg), .responding(let leg, _): leg
        case .judging, .collecting, .holding, .serving, .awaitingCommit, .awaitingDevice,
            .connecting, .over:
            nil
        }
    }

    /// Keeps what has changed of it.
    mutating func keep(_ leg: Leg) {
        if case .responding(_, let response) = state {
            state = .responding(leg, response)
        } else {
            state = .sending(leg)
        }
    }

    /// Traps: the event is a bug of the driver.
    func impossible(_ event: StaticString) -> Never {
        preconditionFailure("Flow: \(event) while \(state)")
    }
}
