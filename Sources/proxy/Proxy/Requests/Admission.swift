import EventLoops
import HTTPWire
import Rules
import Services
import Telemetry
import Verification

/// The steps before a request's first wait, while the bytes of its head are there. Each request
/// goes through them in this order:
///
///     named      by a trusted proxy, or by the gateway
///     found      whose address it is
///     counted    against the address's limit of requests: 429
///     located    the trial of a front: 404. A loop: 508. The last hop of OPTIONS: 200. A service:
///                its limit of calls, its content. An origin: goes on
///     routed     the rule of its path; where the interpretations of the path differ, the rule
///                among theirs that refuses the client, or the strictest
///     taken      content that came whole with the head
///
/// Nothing waits here, so it is a function and no machine. ``Flow`` begins with the verdict.
struct Admission {
    private let exchange: ExchangeState

    init(_ exchange: ExchangeState) { self.exchange = exchange }

    private var proxy: ProxyLoop { exchange.proxy }
    private var settings: ProxySettings { exchange.settings }

    /// Admits the request whose head was read, or the one that it asks about.
    ///
    /// - Returns: the next action: that of the verdict, a service, an origin, or an answer.
    func action(_ bytes: Span<UInt8>, fault: Malformed.Reason?) -> Flow.Action {
        count()
        if let fault { return exchange.flow.malformed(fault) }
        guard let question = exchange.peer.decides else {
            return admit(proxy.heads.request, bytes)
        }
        return admitAsked(question, bytes)
    }

    /// Answers a call that asks about no readable request; its own head was read.
    func action(_ bytes: Span<UInt8>, unclear outcome: LocalOutcome) -> Flow.Action {
        count()
        proxy.tally.add(.decisions)
        return admit(proxy.heads.request, bytes, unclear: outcome)
    }

    private func count() {
        proxy.tally.add(.requests)
        if exchange.record.spoken == .http2 { proxy.tally.add(.http2Requests) }
    }

    /// The admission itself.
    ///
    /// - unclear: why a proxy's query gets no decision; `nil` for an ordinary request.
    private func admit(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        unclear: LocalOutcome? = nil
    ) -> Flow.Action {
        identify(head, bytes)
        if settings.options.logsAccess || exchange.record.spans != nil {
            exchange.record.keepAsked(head, bytes)
            if settings.options.logRule.form != .json {
                exchange.record.asked.addCaller(head, bytes)
            }
        }
        if settings.options.verdictSigner != nil {
            exchange.record.line = RequestRecord.Line(head, bytes)
        }
        if !settings.options.trustedProxies.isEmpty { findClient(head, bytes) }
        findAddress()
        if let rate = settings.addressRequests,
            let wait = exchange.account.entry?.takeRequest(rate, now: exchange.record.startedAt)
        {
            keepAsked(head, bytes)
            return throttled(wait)
        }
        if let unclear { return answered(by: LocalResponse(unclear), named: "decision") }
        switch destination(head, bytes) {
        case .none: return route(head, bytes)
        case .loop: return exchange.flow.declined(.loopDetected)
        case .lastHop: return exchange.flow.declined(.lastHop)
        case .service(let service):
            keepAsked(head, bytes)
            let isOpenMetrics = head.fields.acceptsOpenMetrics(bytes)
            let format: Exposition.Format = isOpenMetrics ? .openMetrics : .prometheus
            exchange.call = ServiceCall(head, bytes, of: service, as: format)
            return call(head, bytes, of: service)
        case .refused(let response, let name): return answered(by: response, named: name)
        }
    }

    /// What the gateway answers itself. A request that another proxy asks about is that proxy's to
    /// answer; only the trial of a front never goes on.
    private func destination(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>
    ) -> ServiceTable.Match {
        let now = exchange.record.startedAt
        guard case .decision(_, let content) = exchange.flow.purpose else {
            return proxy.services.trial(head, bytes, asked: nil, now: now)
                ?? proxy.services.find(head, bytes)
        }
        let asked = exchange.peer.decides.map { (question: $0, content: content) }
        return proxy.services.trial(head, bytes, asked: asked, now: now) ?? .none
    }

    /// A path or method of the gateway's own that no service answers.
    private func answered(by response: LocalResponse, named name: String) -> Flow.Action {
        exchange.call = ServiceCall(named: name, response)
        return exchange.flow.declined(.service)
    }

    // MARK: Names and address

    /// Takes the names that a trusted proxy gives. Names from all other peers are deleted, so that
    /// no client chooses a line of the log or joins the trace of another one.
    private func identify(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
        if exchange.peer.isTrusted {
            if let id = head.fields.requestID(bytes) {
                exchange.record.id = id
                exchange.record.carried.insert(FieldKindSet(.requestID))
            }
            if let parent = head.fields.spanContext(bytes) {
                carry(parent)
            }
        }
        guard exchange.record.trace == nil else { return }
        if let recording = settings.options.tracing, proxy.spanSampler.takes(recording.ratio) {
            let isNamed = exchange.record.carried.contains(.requestID)
            let id = TraceID(isNamed ? proxy.ids.next() : exchange.record.id)
            exchange.record.trace = id
            exchange.record.spans = id.map { RequestSpans($0, parent: nil, &proxy.ids) }
            return
        }
        switch settings.options.traces {
        case .carry: break
        case .begin, .beginSampled:
            let isNamed = exchange.record.carried.contains(.requestID)
            exchange.record.trace = TraceID(isNamed ? proxy.ids.next() : exchange.record.id)
        }
    }

    /// Goes on with the trace of a trusted proxy. Its decision holds: what it records is recorded
    /// here, with the gateway's span as the origin's parent. Otherwise the origin's parent is the
    /// span that the proxy names (W3C Trace Context §2.3).
    private func carry(_ parent: SpanContext) {
        exchange.record.trace = parent.trace
        exchange.record.parentSpan = parent.span
        guard parent.isSampled, settings.options.tracing != nil else {
            return exchange.record.carried.formUnion(.trace)
        }
        exchange.record.carried.insert(FieldKindSet(.tracestate))
        exchange.record.spans = RequestSpans(parent.trace, parent: parent.span, &proxy.ids)
    }

    /// Finds the client's address, where trusted proxies name it.
    private func findClient(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
        guard let client = exchange.client, !exchange.peer.isNameless else { return }
        let settings = settings
        proxy.scratch.address.read(
            head.fields,
            bytes,
            source: settings.options.addressSource,
            peer: client.asked?.peer ?? exchange.peer.address,
            isTrusted: { settings.isTrusted($0) }
        )
        exchange.account.address = proxy.scratch.address.client
    }

    /// Finds the address whose limits the request counts against. If a trusted proxy names a
    /// client, it is that client's address, or else the proxy's own, so that no spelling avoids a
    /// limit. Only the peer of a Unix socket that is not trusted has no address.
    private func findAddress() {
        let address = exchange.account.address
        if address == exchange.peer.address, let entry = exchange.peer.entry {
            exchange.account.holding = .ofConnection(entry)
            return
        }
        guard exchange.hasAddress else { return }
        if case .held(let entry) = proxy.hold(address, max: nil) {
            exchange.account.holding = .ofRequest(entry)
        }
    }

    private func throttled(_ wait: UInt64) -> Flow.Action {
        proxy.tally.add(.addressRequestsRefused)
        exchange.account.wait = wait
        return exchange.flow.declined(.declined(.addressThrottled))
    }

    // MARK: A service

    /// Counts the call where it costs a token; then comes the service's rule, its content, or its
    /// answer.
    private func call(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        of service: ServiceEntry
    ) -> Flow.Action {
        switch service.terms.cost {
        case .nothing: break
        case .call, .verification:
            if let rate = settings.addressCalls,
                let wait = exchange.account.entry?.takeCall(rate, now: exchange.record.startedAt)
            {
                return throttled(wait)
            }
        }
        guard let rule = service.terms.rule else {
            let contentMax = service.terms.contentMax ?? UInt64(settings.limits.endpointBodyMax)
            return exchange.flow.asked(contentMax: contentMax)
        }
        exchange.flow.asked(by: rule)
        return judge(head, bytes)
    }

    // MARK: A rule

    /// Looks for the rule.
    private func route(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Flow.Action {
        let client = exchange.hasAddress ? exchange.account.address : nil
        let rules = settings.rules
        switch rules.destination(of: head, bytes, from: client, view: &proxy.scratch.view) {
        case .rule(let rule):
            if rule.mode != .off { keepAsked(head, bytes) }
            exchange.flow.routed(to: rule)
            takeContent(rule)
            return judge(head, bytes)
        case .unroutable(let rule, let reason):
            keepAsked(head, bytes)
            exchange.flow.routed(to: rule)
            return exchange.flow.malformed(reason)
        case .disputed(let dispute):
            keepAsked(head, bytes)
            exchange.flow.routed(to: dispute.found)
            return Judging(exchange).settle(head, bytes, disputed: dispute)
        }
    }

    /// Copies what the request asks for, if the log has not done so and `why` may need it for a
    /// refusal.
    private func keepAsked(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
        guard !settings.options.logsAccess else { return }
        exchange.record.keepAsked(head, bytes)
    }

    /// Takes content that came whole with the head from the client's stream.
    private func takeContent(_ rule: Rule) {
        guard exchange.flow.facts.hasContent,
            case .length(let length) = exchange.flow.facts.framing,
            let client = exchange.client, client.hasWholeContent
        else { return }
        let place = Content.place(ofWhole: length, by: rule)
        guard place != .unread else { return }
        guard let bytes = client.takeWholeContent(max: length) else {
            preconditionFailure("Admission: content that is here can't be taken")
        }
        if place == .held {
            exchange.content = .held(HeldBody(exchange.heldBounds, whole: bytes))
        } else {
            // It is not counted as held: the head isn't either, and may be larger.
            exchange.content = .withHead(bytes)
        }
        proxy.tally.add(.uploadBytes, length)
        exchange.flow.took(length, as: place)
    }

    /// Judges, forwards or denies, as the rule's mode says.
    private func judge(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Flow.Action {
        switch exchange.flow.rule.mode {
        case .off:
            let action = exchange.flow.unjudged()
            exchange.writeHead(head, bytes)
            return action
        case .deny: return exchange.flow.judged(Verdict(.refuse(.noRule)), .enforced)
        case .observe, .enforce: return Judging(exchange).judge(head, bytes)
        }
    }
}

// A query of another proxy about a request, before it forwards that request itself.
//
// If the head of that request is not the query's own, it is written again, and the parser of all
// heads reads it. From then on it is an ordinary request: the same rule in all interpretations of
// its path, the same checks, the same verdict. Only its end differs. Where it would go to an
// origin, the answer says that the proxy may forward it.
extension Admission {
    /// Finds the request of the query, and continues with its head.
    ///
    /// Checked in this order: that the peer may ask, that a query over gRPC calls what there is,
    /// that the query has no content where the listener takes none, that no field of it makes the
    /// application execute another request, that it names one request, and that this request's
    /// head is well-formed. If a check fails, the query's own head is logged.
    private func admitAsked(_ question: DecisionQuestion, _ bytes: Span<UInt8>) -> Flow.Action {
        proxy.tally.add(.decisions)
        if let fault = faultOfQuestion(proxy.heads.request, bytes, as: question) {
            return admit(proxy.heads.request, bytes, unclear: .fault(fault))
        }
        let form = question.form
        let isWhole = exchange.client?.asked?.isWhole ?? true
        let content = isWhole ? question.askedContent(of: proxy.heads.request, bytes) : .unseen
        guard form.isWritten else {
            exchange.flow.decides(form, content)
            return admit(proxy.heads.request, bytes)
        }
        var asked = proxy.takeHead()
        defer { proxy.giveBack(head: &asked) }
        guard form.write(proxy.heads.request, bytes, into: &asked) else {
            return admit(proxy.heads.request, bytes, unclear: .fault(.questionUnclear))
        }
        let heads = proxy.scratch.askedHeads
        if let fault = heads.fault(in: asked.span, of: exchange.peer, settings.limits) {
            proxy.tally.add(.malformedRequests)
            return admit(proxy.heads.request, bytes, unclear: .malformed(fault))
        }
        exchange.flow.decides(form, content)
        return admit(heads.request, asked.span)
    }

    private func faultOfQuestion(
        _ question: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        as asked: DecisionQuestion
    ) -> LocalFault? {
        guard let client = exchange.client, exchange.peer.isTrusted else { return .askerUntrusted }
        if asked.form == .extAuthzGRPC, client.asked == nil { return .endpointUnknown }
        if exchange.flow.facts.hasContent, asked.content == .none { return .contentRefused }
        // The other proxy would forward these fields with the request. The gateway would have
        // deleted them.
        if question.fields.asksForeignProtocol(bytes) { return .protocolRefused }
        let guarded = settings.rules.guardedFields
        return question.fields.hasTwin(bytes, guarding: guarded) ? .fieldDisguised : nil
    }
}
