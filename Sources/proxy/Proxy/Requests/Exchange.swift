import Cryptography
import EventLoops
import HTTPWire
import KeyStore
import Rules
import Services
import Telemetry
import Verification

/// One request and its response. It performs the actions of the request's machine, ``Flow``.
///
/// It owns what the machine does not see: the client's stream, the connection to a server, the
/// content that is here, the head for the origin, and the line for the log. It reports events to
/// the machine, and decides nothing. Lives on one event loop from the request's head to the
/// response's end, and serves no other request.
final class Exchange {
    let proxy: ProxyLoop
    let settings: ProxySettings
    /// The event loop's pools at the time of the request, in the order of `settings.origins`. A
    /// reload may give the event loop other pools.
    let pools: [OriginPool]
    /// The other end of the client's connection.
    let peer: ClientPeer
    /// Released when the request has been recorded.
    private(set) var client: (any ClientStream)?
    @exclusivity(unchecked) var side = OriginSide()
    @exclusivity(unchecked) var flow: Flow
    @exclusivity(unchecked) var content = KeptContent.nothing
    /// Kept until the response begins, for a second attempt.
    @exclusivity(unchecked) var originHead: OriginHead
    /// The service that answers; `nil` where an origin does.
    var call: ServiceCall?
    /// The head, while the store is asked for its key: the client's buffer is reused.
    var keptHead: [UInt8] = []
    /// The request's device, where its rule asks for that.
    var device: DeviceVisit?
    /// Its tokens, where its rule names any.
    var tokens: ShownTokens?
    /// The client's address and its limits.
    var account: AddressAccount
    @exclusivity(unchecked) var record: RequestRecord

    init(_ proxy: ProxyLoop, for client: any ClientStream, _ facts: RequestFacts) {
        self.proxy = proxy
        self.client = client
        peer = client.peer
        settings = proxy.settings
        pools = proxy.pools
        flow = Flow(facts, fallback: proxy.settings.rules.fallback)
        originHead = OriginHead(bytes: proxy.takeHead())
        account = AddressAccount(peer.address)
        record = RequestRecord(
            proxy.ids.next(),
            startedAt: MonotonicClock.nanoseconds,
            spoken: client.spoken
        )
    }

    var loop: EventLoop { proxy.loop }

    /// The connection to the server that has the request.
    var origin: (any OriginStream)? { side.stream }

    /// Performs an action and all actions that follow.
    func perform(_ first: Flow.Action) {
        var action = first
        while true {
            switch action {
            case .none: return
            case .judgeHead: action = Judging(self).judgeKeptHead()
            case .collect, .stream: return readFirstContent()
            case .hold:
                // The place was prepared when the head was judged.
                proxy.tally.add(.bodiesHeld)
                return readFirstContent()
            case .readContent: return readContent()
            case .skim:
                if content.heldBody != nil { dropContent() }
                return readFirstContent()
            case .awaitContent:
                client?.awaitContent()
                return
            case .serve: action = serviceCall.ask(for: self)
            case .judgeContent: action = Judging(self).judgeContent()
            case .judgeEnd: action = judgeEnd()

            case .awaitCommit(let ticket): return proxy.commits.wait(for: ticket, self)
            case .ask(let query): action = Querying(self).ask(query)
            case .admit: action = admit()
            case .release: action = releaseContent()
            case .connect(let attempt): action = connect(attempt)
            case .retry(let why, let release, let attempt):
                action = retry(why, release, as: attempt)
            case .sendHead(let count, let ending): action = sendHead(with: count, ending)
            case .sendHeld(let offset): action = sendHeld(from: offset)
            case .endHeld: action = endHeld()
            case .streamOn:
                dropContent()
                client?.awaitContent()
                return readContent()
            case .sendContent(let piece): action = sendContent(piece)
            case .awaitResponse(let output, let held): return awaitResponse(output, held)
            case .endRequest(let output, let held): return endRequest(output, held)
            case .readLastWords: action = readLastWords()
            case .awaitOrigin: return watchOrigin()

            case .relay, .beginTunnel:
                preconditionFailure("Exchange: \(action) behind the response's head")
            case .answer(let reply, let release, let fate):
                return answer(reply, release, then: fate)
            case .finish(let release): return finish(release)
            case .cutOff(let reply, let release): return cutOff(reply, release)
            case .end(let release): return end(release)
            }
        }
    }

    /// The request is over and its client's stream has been dealt with.
    func leave() {
        Audit(self).requestEnded()
        letGo()
    }

    /// Releases shared objects; the rest is released with the exchange.
    func letGo() {
        client = nil
        _ = side.leave()
        side.countRetry(of: nil)
        // The content is counted with the address, so it is released before that.
        dropContent()
        account.leave()?.release(now: MonotonicClock.nanoseconds)
        proxy.giveBack(head: &originHead.bytes)
    }

    /// Releases the content. If a signature was verified for it and the request was not admitted,
    /// that counts against the client's address.
    func dropContent() {
        let dropped = content
        content = .nothing
        if dropped.hasCostSignature { addFailure(now: MonotonicClock.nanoseconds) }
        dropped.heldBody?.release()
    }
}

extension Exchange: ClientStreamOwner {
    func begin(_ bytes: Span<UInt8>, fault: Malformed.Reason?) {
        perform(Admission(self).action(bytes, fault: fault))
    }

    var isUploaded: Bool { flow.isUploaded }

    func contentReady() { perform(flow.contentReady()) }

    func contentTimedOut() { perform(flow.contentTimedOut()) }

    func clientDrained() {
        guard let client else { return }
        client.expectNothing()
        if flow.awaitsContent { client.awaitContent() }
        origin?.resumeReading()
    }

    func clientBroke() -> Bool { flow.clientBroke() }

    func clientClosed(_ why: ClientEnd) {
        guard client != nil else { return }
        if case .aborted = why { proxy.tally.add(.clientAborts) }
        record.note(problem: Self.problem(of: why))
        switch flow.clientClosed() {
        case .end(let release): end(release)
        // The request was being answered.
        default: leave()
        }
    }

    private static func problem(of end: ClientEnd) -> String {
        switch end {
        case .aborted: "client-aborted"
        case .tooSlow: "client-timeout"
        case .drained: "drain-timeout"
        }
    }
}

// The verdict.
extension Exchange {
    /// Judges the end of streamed content.
    func judgeEnd() -> Flow.Action {
        switch judgedEnd() {
        case .send: return .sendContent(.last)
        case .stop(let action): return action
        case .collect, .hold, .append, .skim, .sendHashed, .judgeEnd:
            preconditionFailure("Exchange: the end of content that is held was judged")
        }
    }

    func judgedEnd() -> Flow.Take { flow.endJudged(Judging.faultAtEnd(of: self)) }

    /// The commit that the request waited for has ended. The client may have gone meanwhile.
    func committed(_ decision: ConsumeDecision) {
        let decision = proxy.judge.keyCheck.late(decision, of: flow.verdictState.keyID)
        if case .refused = decision { Judging.refused(atCommitOf: self) }
        perform(flow.committed(decision))
    }

    /// Forwards with the verdict.
    func admit() -> Flow.Action {
        // Content that is still to come may change the verdict.
        if flow.isUploaded { Audit(self).countVerdict() }
        writeVerdict()
        return forward()
    }

    /// Forwards held content before all of it was judged.
    func releaseContent() -> Flow.Action {
        guard let held = content.heldBody else { return .none }
        if content.hasCostSignature { addFailure(now: MonotonicClock.nanoseconds) }
        content = .held(held)
        HeadWriter.framing(flow.facts.framing, into: &originHead.bytes)
        client?.stopDeadline()
        writeVerdict()
        return forward()
    }

    /// Tells the verdict to the origin, or to the proxy that has asked.
    func writeVerdict() {
        if let (verdict, _) = flow.verdictState.given { originHead.tell(verdict, for: self) }
    }

    /// Ends the head, and connects to a server.
    func forward() -> Flow.Action {
        originHead.end(with: content.takeArrived())
        return .connect(.first)
    }
}

// The limits of the client's address.
extension Exchange {
    /// Whether the client's address is known.
    var hasAddress: Bool {
        guard client != nil, account.address == peer.address else { return true }
        return !peer.isUnix || peer.isTrusted
    }

    /// Whether the gateway may verify a signature for the address.
    func mayVerify(now: UInt64) -> Bool {
        guard let wait = verificationWait(now: now) else { return true }
        account.wait = wait
        return false
    }

    /// Nanoseconds until the gateway may verify a signature for the address; `nil` when it may now.
    func verificationWait(now: UInt64) -> UInt64? {
        settings.addressFailures.flatMap { account.entry?.failureWait($0, now: now) }
    }

    /// Counts a verification that failed. The client may have gone by then.
    func addFailure(now: UInt64) {
        guard let rate = settings.addressFailures else { return }
        if let entry = account.entry { return entry.addFailure(rate, now: now) }
        guard account.isReleased, case .held(let entry) = proxy.hold(account.address, max: nil)
        else { return }
        entry.addFailure(rate, now: now)
        entry.release(now: now)
    }

    /// The address is over a limit. A connection of its own is then not read for a while. The
    /// connection of a trusted proxy is read on, since it also carries other clients' requests.
    func pauseAddress() { if account.hasConnection { client?.pause() } }
}

// The ends of a request.
extension Exchange {
    /// Answers, and ends the request.
    func answer(_ reply: Reply, _ release: Release, then fate: ClientFate) {
        guard let client else { return }
        self.release(release)
        Audit(self).answered(reply)
        switch fate {
        case .goesOn: break
        case .skips: if !client.dropContent() { client.endAfterResponse() }
        case .lingers: client.endAfterResponse()
        }
        var response = Answering(self).response(to: reply)
        response.name(record.id)
        if let form = flow.facts.grpc { response.answer(form) }
        if response.outcome.endsConnection(toQuestion: peer.decides != nil) {
            client.endAfterResponse()
        }
        record.outcome = response.outcome
        record.status = response.status
        record.note(problem: response.outcome.reason)
        record.responseBytes = flow.facts.method == .head ? 0 : UInt64(response.content.count)
        client.respond(response)
        finish(.none)
    }

    /// The response is complete: the client's connection continues or ends.
    func finish(_ release: Release) {
        self.release(release)
        guard let client else { return }
        leave()
        client.finish()
    }

    /// The response can't be completed, and the client must see that.
    func cutOff(_ reply: Reply, _ release: Release) {
        guard let client else { return }
        Audit(self).answered(reply)
        self.release(release)
        leave()
        client.reset()
    }

    /// The client is gone.
    func end(_ release: Release) {
        self.release(release)
        leave()
    }

    var serviceCall: ServiceCall {
        guard let call else { preconditionFailure("Exchange: no service was chosen") }
        return call
    }
}
