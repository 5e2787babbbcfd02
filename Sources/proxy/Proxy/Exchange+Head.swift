import ClientStreams
import HTTPWire
import Lanes
import RequestFlow
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
    ) -> RequestFlow.Action {
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
    ) -> RequestFlow.Action {
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
    ) -> RequestFlow.Action {
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
    private func takeContent(_ taking: RequestFlow.Taking) -> RequestFlow.Action {
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
