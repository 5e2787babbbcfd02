import ClientStreams
import HTTPWire
import Lanes
import Rules
import Services
import Telemetry

// The request's head, while its bytes are there.
extension Exchange {
    func begin(_ octets: Span<UInt8>, fault: Malformed.Reason?) {
        proxy.tally.add(.requests)
        if record.spoken == .http2 { proxy.tally.add(.http2Requests) }
        if let fault { return perform(flow.headMalformed(fault)) }
        if let form = client?.decides { return perform(readQuestion(form, octets)) }
        perform(readHead(proxy.heads.request, octets))
    }

    /// Performs the actions that need the head.
    ///
    /// - Returns: the first that does not.
    func readHead(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>
    ) -> Flow.Action {
        identify(head, octets)
        if settings.logsAccess {
            record.asked = RequestRecord.Asked(head, octets)
            if settings.logRule.form == .combined { record.asked.addCaller(head, octets) }
        }
        if !settings.trustedProxies.isEmpty { findClient(head, octets) }
        var action = flow.headRead()
        while true {
            switch action {
            case .countRequest: action = countRequest()
            case .locate: action = locate(head, octets)
            case .countCall: action = countCall()
            case .findRule: action = findRule(head, octets)
            case .takeContent(let taking): action = takeContent(taking)
            case .judgeHead: action = judgeHead(head, octets)
            case .admitUnjudged:
                writeOriginHead(head, octets, framing: flow.facts.framing)
                return forward()
            case .none, .collect, .hold, .stream, .readContent, .awaitContent, .serve,
                .judgeContent, .judgeEnd, .skipContent, .awaitCommit, .askDevice, .admit,
                .release,
                .connect, .retry, .sendHead, .sendHeld, .endHeld, .streamOn, .sendContent,
                .awaitResponse, .endRequest, .readLastWords, .awaitOrigin, .relay, .beginTunnel,
                .answer, .finish, .cutOff, .end:
                return action
            }
        }
    }

    /// Finds out who is asked.
    private func locate(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>
    ) -> Flow.Action {
        switch question {
        case .none: break
        case .asked: return flow.located(.decision)
        case .refused:
            record.service = "decision"
            return flow.serviceRefused()
        }
        switch proxy.services.find(head, octets) {
        case .none: return flow.located(.origin)
        case .loop: return flow.located(.loop)
        case .lastHop: return flow.located(.lastHop)
        case .service(let service):
            if head.fields.acceptsOpenMetrics(octets) { record.format = .openMetrics }
            return locate(service)
        case .refused(let response, let name):
            record.service = name
            content = .answered(response)
            return flow.serviceRefused()
        }
    }

    /// Looks for the rule.
    private func findRule(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>
    ) -> Flow.Action {
        switch settings.rules.destination(of: head, octets, view: &proxy.view) {
        case .rule(let rule):
            keepAsked(head, octets, rule)
            return flow.routed(to: rule, whole: wholeContent)
        case .unroutable(let rule, let reason):
            keepAsked(head, octets, rule)
            return flow.unroutable(rule, reason)
        }
    }

    /// Copies what is asked where no log did, and a refusal may be asked about.
    private func keepAsked(_ head: borrowing RequestHead, _ octets: Span<UInt8>, _ rule: Rule) {
        guard !settings.logsAccess, rule.mode != .off else { return }
        record.asked = RequestRecord.Asked(head, octets)
    }

    /// How much content there is, where all of it is here.
    private var wholeContent: UInt64? {
        guard case .length(let length) = flow.facts.framing, client?.hasWholeContent == true
        else { return nil }
        return length
    }

    /// Who the client is, where trusted proxies say so.
    private func findClient(_ head: borrowing RequestHead, _ octets: Span<UInt8>) {
        guard let client else { return }
        let settings = settings
        proxy.address.read(
            head.fields,
            octets,
            source: settings.addressSource,
            peer: client.peerAddress,
            isTrusted: { settings.isTrusted($0) }
        )
        account.address = proxy.address.client
    }

    /// Takes content off the client's stream: it is judged where it is, and goes to the origin
    /// together with the head, or is held.
    private func takeContent(_ taking: Flow.Taking) -> Flow.Action {
        let length: UInt64
        switch taking {
        case .behindHead(let count), .held(let count): length = count
        }
        guard let bytes = client?.takeWholeContent(max: length) else {
            preconditionFailure("Exchange: content that is here can't be taken")
        }
        switch taking {
        // It is not counted as held: the head isn't either, and may be larger.
        case .behindHead: content = .withHead(bytes)
        case .held: content = .held(HeldBody(heldBounds, whole: bytes))
        }
        proxy.tally.add(.uploadBytes, length)
        return flow.contentTaken(length)
    }
}

/// Whether a request is what its client wants, or what another proxy asks about.
enum Question {
    case none
    case asked(DecisionForm)
    /// It gets no decision; the answer is the exchange's content.
    case refused
}

// A request that another proxy asks about, before it forwards that request itself.
//
// The head of that request is written anew where it is not the question's own, and read by the
// parser that reads all heads. From there on it is a request like any other: the same rule in all
// readings of its path, the same checks, the same verdict. Only its end differs. Where it would go
// to an origin, the proxy is told that it may forward it.
extension Exchange {
    /// Finds the request that is asked about, and goes on with its head.
    ///
    /// Checked in this order: that the asker may ask, that the question has no content, that
    /// nothing in it makes the application execute what is not asked about, that it names one
    /// request, and that this request's head is well-formed.
    func readQuestion(_ form: DecisionForm, _ octets: Span<UInt8>) -> Flow.Action {
        proxy.tally.add(.decisions)
        guard let client, client.peerIsTrusted else {
            return refuse(.fault(.askerUntrusted), octets)
        }
        guard !flow.facts.hasContent else { return refuse(.fault(.contentRefused), octets) }
        if let fault = leadingAround(proxy.heads.request, octets) {
            return refuse(.fault(fault), octets)
        }
        guard form.isWritten else {
            question = .asked(form)
            return readHead(proxy.heads.request, octets)
        }
        var asked = proxy.takeHead()
        defer { proxy.giveBack(head: &asked) }
        guard form.write(proxy.heads.request, octets, into: &asked) else {
            return refuse(.fault(.questionUnclear), octets)
        }
        let heads = proxy.askedHeads
        do throws(Malformed) {
            let limits = settings.clientLimits.head
            try heads.request.read(asked.span, isSecure: client.isSecure, limits: limits)
        } catch {
            proxy.tally.add(.malformedRequests)
            return refuse(.malformed(error.reason), octets)
        }
        question = .asked(form)
        return readHead(heads.request, asked.span)
    }

    /// What the other proxy would forward beside the request that is asked about, and the gateway
    /// would have deleted.
    private func leadingAround(
        _ question: borrowing RequestHead,
        _ octets: Span<UInt8>
    ) -> LocalFault? {
        if question.fields.asksForeignProtocol(octets) { return .protocolRefused }
        let guarded = settings.rules.guardedFields
        return question.fields.hasTwin(octets, guarding: guarded) ? .fieldDisguised : nil
    }

    /// There is no decision about what the question names, and its own head goes into the log.
    private func refuse(_ outcome: LocalOutcome, _ octets: Span<UInt8>) -> Flow.Action {
        question = .refused
        content = .answered(LocalResponse(outcome))
        return readHead(proxy.heads.request, octets)
    }

    /// Tells the proxy that it may forward the request: with what the origin is to be told, and
    /// what the client is.
    func allowance() -> LocalResponse {
        writeVerdict()
        if case .asked(.extAuthz) = question { nameRemoved() }
        return LocalResponse(allowing: originHead, notes: notesToClient)
    }

    /// The fields that origins get from the gateway alone, and those of a proof by session. No rule
    /// lets a client's own pass.
    private static let gatewayFields: [StaticString] = [
        "App-Attest-Verdict", "App-Attest-Reason", "App-Attest-Key-Id", "App-Attest-App-Id",
        "App-Attest-Environment", "App-Attest-Proof", "App-Attest-Risk", "App-Attest-Context",
        "App-Attest-Device-Bits", "App-Attest-Device-Token", "App-Attest-Session",
        "App-Attest-Sequence", "App-Attest-Signature",
    ]
    /// Those of a proof, which an application may read where a rule verifies nothing.
    private static let proofFields: [StaticString] = [
        "App-Attest-Assertion", "App-Attest-Challenge", "App-Attest-Unsupported",
    ]

    /// Envoy removes the fields that this one lists. It replaces those of the client that the
    /// answer has too; without this field it would pass the others on.
    private func nameRemoved() {
        var names = Self.gatewayFields
        if flow.rule.mode != .off { names += Self.proofFields }
        let removed = names.map(\.description).filter { !hasLine($0) }
        let text = removed.joined(separator: ", ")
        HeadWriter.field("X-Envoy-Auth-Headers-To-Remove", text: text, into: &originHead)
    }

    /// Whether a field of this name was written for the origin.
    private func hasLine(_ name: String) -> Bool {
        originHead.split(separator: UInt8(ascii: "\n")).contains {
            $0.starts(with: (name + ":").utf8)
        }
    }
}

// By what name the request is known: in the log, to the origin, and in a problem document.
extension Exchange {
    /// Takes the names that a trusted proxy gives. What anybody else gives is deleted, so that no
    /// client chooses a line of the log or joins the trace of another one.
    func identify(_ head: borrowing RequestHead, _ octets: Span<UInt8>) {
        if client?.peerIsTrusted == true {
            if let id = head.fields.requestID(octets) {
                record.id = id
                record.carried.insert(FieldKindSet(.requestID))
            }
            if let trace = head.fields.traceID(octets) {
                record.trace = trace
                // The gateway records no spans: the origin's parent is the one that the proxy names
                // (W3C Trace Context §2.3).
                record.carried.formUnion(.trace)
            }
        }
        guard record.trace == nil else { return }
        switch settings.traces {
        case .carry: break
        case .begin, .beginSampled:
            record.trace = record.carried.contains(.requestID) ? proxy.ids.next() : record.id
        }
    }

    /// Tells the origin the names that it does not get as they came.
    ///
    /// - keepsTrace: the origin gets the client's traceparent.
    func writeIdentity(keepsTrace: Bool) {
        if !record.carried.contains(.requestID) {
            HeadWriter.requestID(record.id, into: &originHead)
        }
        guard let trace = record.trace, !record.carried.contains(.traceparent), !keepsTrace
        else { return }
        HeadWriter.traceParent(
            trace,
            span: proxy.ids.next(),
            isSampled: settings.traces == .beginSampled,
            into: &originHead
        )
    }
}
