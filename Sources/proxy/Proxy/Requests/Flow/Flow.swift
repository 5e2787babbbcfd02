import HTTPWire
import KeyStore
import Rules
import Verification

/// One admitted request, from its verdict to the end of its response, as a pure state machine.
///
///     awaitingKey
///         ⇅
///     judging ⇄ holding           collecting → serving ──→ over
///      │   └→ awaitingCommit ─┬──────────────────┘
///      │        │     └───────│→ awaitingAnswer
///      ▼        ▼             ▼        │
///     connecting ◀─────────────────────┘
///      ▲      ▼
///      └── sending ──→ responding ──→ over
///
/// Before it, admission counts the request, finds its destination and its rule. Admission is a
/// function, since nothing waits there. Every state except `over` can also end with the gateway's
/// own answer, or when the client goes. A query of another proxy about a request is answered where
/// the request would go to `connecting`, once its content was read (`skimming`).
///
/// Every event is a method. It returns the next action. The driver performs the action and decides
/// nothing; it is the proxy's `Exchange`, or a test's table. The machine knows what a request
/// means. The streams on both sides know its form on a connection (framing, `100 Continue`, whether
/// the connection continues). The driver keeps every byte of content.
///
/// An event that is impossible in a state traps with a message. An event that was on its way when
/// the request ended is *late* and has no effect.
struct Flow: ~Copyable {
    /// The facts of the request, taken from its head once.
    let facts: RequestFacts
    /// What the request leads to once it is admitted.
    private(set) var purpose = Purpose.relay
    /// Its rule. It is the fallback until a rule was found, and for a service that judges nothing.
    /// A service that judges its requests has its own rule.
    private(set) var rule: Rule
    /// Where the request goes if it is forwarded; `nil` where it goes to no origin.
    private(set) var origin: OriginIndex?
    /// The result of judging it.
    var verdictState = VerdictState()
    /// Bytes of content that have come.
    var contentBytes: UInt64 = 0
    var state: RequestState

    /// What an admitted request leads to.
    enum Purpose: Equatable {
        /// It goes to an origin, whose response goes to the client.
        case relay
        /// A proxy has asked about it, and may forward it.
        case decision(DecisionForm, AskedContent)
        /// A service of the gateway answers it.
        case service
    }

    /// - fallback: the rule of requests that were not routed.
    init(_ facts: RequestFacts, fallback: Rule) {
        self.facts = facts
        rule = fallback
        origin = fallback.origin
        state = .judging(facts.hasContent ? .unread : .withHead)
    }
}

// Results of admission.
extension Flow {
    /// A proxy asks whether it may forward the request.
    mutating func decides(_ form: DecisionForm, _ content: AskedContent) {
        purpose = .decision(form, content)
    }

    /// The request is answered before it is judged.
    mutating func declined(_ reply: Reply) -> Action {
        guard case .judging = state else { impossible("declined") }
        return answer(reply)
    }

    /// The request can't be read, or has several interpretations. Its framing can't be trusted, so
    /// the connection ends. Only the connection of a proxy that asks stays, since it carries
    /// queries about other requests.
    mutating func malformed(_ reason: Malformed.Reason) -> Action {
        guard case .judging = state else { impossible("malformed") }
        if case .decision = purpose { return answer(.malformed(reason)) }
        return answerLast(.malformed(reason), .none)
    }

    mutating func routed(to found: Rule) {
        guard case .judging = state else { impossible("routed") }
        rule = found
        origin = found.origin
    }

    /// Another rule than the one that was found decides about the request, which still goes to the
    /// origin of the one that was found.
    mutating func disputed(by deciding: Rule) {
        guard case .judging = state else { impossible("disputed") }
        rule = deciding
    }

    /// Content that came whole with the head was taken from the client's stream.
    mutating func took(_ count: UInt64, as content: Content) {
        guard case .judging(.unread) = state else { impossible("took") }
        contentBytes = count
        state = .judging(content)
    }

    /// The rule judges nothing.
    mutating func unjudged() -> Action {
        guard case .judging(let content) = state else { impossible("unjudged") }
        if case .decision = purpose { return allow(content) }
        state = .connecting(Approach(content: content, attempt: .first, told: .anything))
        return .connect(.first)
    }

    /// A service that judges nothing is asked.
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

    /// A service that judges its requests by this rule is asked.
    mutating func asked(by judged: Rule) {
        precondition(!facts.hasContent, "Flow: a call that is judged has no content")
        purpose = .service
        routed(to: judged)
    }
}

// State for the driver and the streams.
extension Flow {
    /// Whether the request has ended. Later events find it over.
    var isOver: Bool { state.isOver }

    /// Whether content is to be read from the client now.
    var takesContent: Bool { state.takesContent }

    /// Whether the client is to send content, now or when the server takes it.
    var awaitsContent: Bool { takesContent || leg?.isStreaming == true }

    /// Whether the client has sent all of the request.
    var isUploaded: Bool { state.isUploaded }

    /// Whether all of the request's content comes to the gateway, as far as its head can tell.
    var seesContent: Bool {
        if case .decision(_, .unseen) = purpose { false } else { true }
    }

    /// The refusal in the verdict, enforced or not.
    var refusal: Refusal? { verdictState.refusal }

    /// Whether the store is to be asked for the key that a verdict names, before anything else.
    func seeksKey(_ verdict: Verdict) -> Bool { verdictState.seeksKey(verdict) }

    /// Whether held content is forwarded unjudged, with the client's framing.
    var isReleased: Bool { state.isReleased }

    /// Whether the response of an origin has begun.
    var hasResponse: Bool { leg?.hasResponse == true }

    /// The part of the request that an origin got, as far as it is known now.
    var delivery: Delivery { state.delivery }

    /// The request on its way to a server, also while its response comes; `nil` where there is
    /// none.
    var leg: Leg? { state.leg }

    /// Traps: the event is a bug of the driver.
    func impossible(_ event: StaticString) -> Never {
        preconditionFailure("Flow: \(event) while \(state)")
    }
}

// The verdict and the next steps.
extension Flow {
    /// The verdict is known: about the head, or about held content.
    mutating func judged(_ verdict: Verdict, _ enforcement: Enforcement) -> Action {
        guard case .judging(let content) = state else { impossible("judged") }
        verdictState.give(verdict, enforcement)
        return decide(verdict, enforcement, over: content)
    }

    /// The head has no fault, and the verdict needs the content.
    ///
    /// - provisional: a verdict that names the key; its level says whether the key has signed.
    mutating func contentAwaited(_ provisional: Verdict, _ enforcement: Enforcement) -> Action {
        guard case .judging(.unread) = state else { impossible("contentAwaited") }
        verdictState.await(provisional, enforcement)
        state = .holding(.held)
        return .hold
    }

    /// The commit that the request waited for has ended.
    mutating func committed(_ decision: ConsumeDecision) -> Action {
        commitEnded { $0.settle(decision) }
    }

    /// The commit that the request waits for has not ended in time. No later report follows.
    mutating func commitTimedOut() -> Action { commitEnded { $0.settleWithoutCommit() } }

    private mutating func commitEnded(_ settle: (inout Verdict) -> Void) -> Action {
        if isOver { return .none }  // Late: the client has gone.
        // Whatever the store has answered about the key, the request is judged again.
        if case .awaitingKey(let content) = state {
            state = .judging(content)
            return content == .held ? .judgeContent : .judgeHead
        }
        guard case .awaitingCommit(let content) = state,
            let (verdict, enforcement) = verdictState.settle(settle)
        else { impossible("a commit ended") }
        return decide(verdict, enforcement, over: content)
    }

    /// A party that was asked about the request has answered, or has failed to.
    mutating func answered(_ answer: QueryAnswer) -> Action {
        // Late: the client has gone, or the time is over.
        guard case .awaitingAnswer(let content, let query) = state, query == answer.query else {
            return .none
        }
        let rule = rule
        guard let (verdict, enforcement) = verdictState.settle({ $0.settle(answer, rule) }) else {
            impossible("answered")
        }
        return decide(verdict, enforcement, over: content)
    }

    /// The party that was asked about the request has not answered in time.
    mutating func queryTimedOut() -> Action {
        guard case .awaitingAnswer(_, let query) = state else { return .none }  // Late.
        return answered(.unavailable(query))
    }

    /// Mode × rollout × verdict. A refused request waits for nothing, unless another proof may
    /// stand in the place of the one that is no good. What costs a call comes last, so that a
    /// request which is refused anyway costs none.
    private mutating func decide(
        _ verdict: Verdict,
        _ enforcement: Enforcement,
        over content: Content
    ) -> Action {
        if case .key(let ticket) = verdict.pending {
            verdictState.keySought()
            state = .awaitingKey(content)
            return .awaitCommit(ticket)
        }
        let query = verdict.nextQuery(rule)
        if let query, !verdict.stands { return ask(query, content) }
        if let refusal = refusal(of: verdict, enforcement) { return answer(.refused(refusal)) }
        if let ticket = verdict.awaitedTicket(isEnforced: enforcement == .enforced) {
            state = .awaitingCommit(content)
            return .awaitCommit(ticket)
        }
        if let query { return ask(query, content) }
        return forward(content)
    }

    private mutating func ask(_ query: RequestQuery, _ content: Content) -> Action {
        state = .awaitingAnswer(content, query)
        return .ask(query)
    }

    /// Why the gateway answers the request; `nil` where it continues.
    private func refusal(of verdict: Verdict, _ enforcement: Enforcement) -> Refusal? {
        switch Decision(verdict, rule: rule, isEnforced: enforcement == .enforced) {
        case .refuse(let refusal): refusal
        case .forward: nil
        }
    }

    /// No further wait is needed: forwards.
    private mutating func forward(_ content: Content) -> Action {
        switch purpose {
        case .service:
            state = .serving
            return .serve
        case .decision: return allow(content)
        case .relay:
            connect(content)
            return .admit
        }
    }

    /// Tells the proxy that has asked that it may forward the request. Content that has not come is
    /// read first: it may change the verdict, and the proxy sends it before it reads the answer.
    private mutating func allow(_ content: Content) -> Action {
        guard content == .unread else { return answer(.allowed) }
        state = .skimming(.more)
        return .skim
    }

    /// Looks for a server.
    mutating func connect(_ content: Content) {
        verdictState.mustCount()
        let told: Told = verdictState.isPass ? .pass : .anything
        state = .connecting(Approach(content: content, attempt: .first, told: told))
    }
}

// The ends of a request.
extension Flow {
    mutating func served() -> Action { serviceEnded(.service) }

    mutating func storingTimedOut() -> Action {
        if case .awaitingAnswer = state { return queryTimedOut() }
        return serviceEnded(.declined(.storeUnavailable))
    }

    private mutating func serviceEnded(_ reply: Reply) -> Action {
        if isOver { return .none }  // Late: the client has gone, or the other event came first.
        guard case .serving = state else { impossible("a service ended") }
        return answer(reply)
    }

    /// The client has closed both directions, and this was not read yet.
    ///
    /// Content that was verified as a whole is delivered as a whole: a client can't cut it short by
    /// going away. A later send to the client fails anyway.
    ///
    /// - Returns: whether the client's stream is to be closed.
    func clientBroke() -> Bool { state.endsWithClient }

    /// The client's stream was closed before the response was complete.
    mutating func clientClosed() -> Action {
        if isOver { return .none }  // Late: the request has ended by itself.
        let release: Release
        switch state {
        case .connecting: release = .close
        case .forwarding(let leg): release = leg.release()
        case .collecting, .serving, .judging, .holding, .skimming, .awaitingKey, .awaitingCommit,
            .awaitingAnswer, .over:
            release = .none
        }
        state = .over(delivery)
        return .end(release)
    }

    /// Answers. A request that is refused by its head alone need not cost its connection: content
    /// that is here is skipped.
    mutating func answer(_ reply: Reply) -> Action {
        let content: Content
        var release = Release.none
        switch state {
        case .judging(let taken), .awaitingKey(let taken), .awaitingCommit(let taken),
            .awaitingAnswer(let taken, _):
            content = taken
        case .connecting(let approach): content = approach.content
        case .serving, .skimming(.nothing): content = .withHead
        case .forwarding(let leg):
            precondition(!leg.hasResponse, "Flow: an answer after the response's head")
            release = leg.release()
            guard leg.isGiven else { return answerLast(reply, release) }
            content = .withHead
        case .collecting, .holding, .skimming(.more): return answerLast(reply, .none)
        case .over: impossible("answer")
        }
        let fate: ClientFate =
            switch content {
            case .withHead, .held: .goesOn
            case .unread: .skips
            case .released: .lingers
            }
        state = .over(delivery)
        return .answer(reply, release, fate)
    }

    /// Answers, and the rest of the request is not read.
    mutating func answerLast(_ reply: Reply, _ release: Release) -> Action {
        state = .over(delivery)
        return .answer(reply, release, .lingers)
    }

    /// The request can't go on: it is answered, or its response is cut off.
    mutating func abandon(_ reply: Reply) -> Action {
        guard case .forwarding(let leg) = state, leg.hasResponse else { return answer(reply) }
        state = .over(leg.delivery)
        return .cutOff(reply, leg.release())
    }
}
