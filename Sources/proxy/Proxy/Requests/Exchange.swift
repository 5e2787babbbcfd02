import EventLoops
import HTTPWire
import Services
import Telemetry
import Verification

/// One request and its response. It performs the actions of the request's machine, ``Flow``.
///
/// It reports events to the machine, and decides nothing. What it knows of the request is in
/// ``ExchangeState``, which the steps read and fill:
///
///     Admission    head → rule
///     Judging      rule → verdict, and again after a wait
///     Querying     what other parties say
///     Flow         verdict → decision
///     OriginHead   the head for the origin
///     Relay        the request to a server
///     Answering    what the client gets
///     Audit        counts, memory of refusals, log
final class Exchange: ExchangeState {
    override func perform(_ first: Flow.Action) {
        var action = first
        while true {
            switch action {
            case .none: return
            case .judgeHead: action = Judging(self).resume(after: .key)
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
            case .judgeContent: action = Judging(self).resume(after: .content)
            case .judgeEnd: action = judgeEnd()

            case .awaitCommit(let ticket): return proxy.commits.wait(for: ticket, self)
            case .ask(let query): action = Querying(self).ask(query)
            case .admit:
                // Content that is still to come may change the verdict.
                if flow.isUploaded { Audit(self).countVerdict() }
                action = .connect(.first)
            case .release: action = releaseContent()
            case .connect(let attempt):
                if attempt == .first { originHead.end(for: self) }
                action = Relay(self).connect(attempt)
            case .retry(let why, let release, let attempt):
                Relay(self).retry(why, release)
                action = .connect(attempt)
            case .sendHead(let count, let ending):
                action = Relay(self).sendHead(with: count, ending)
            case .sendHeld(let offset): action = Relay(self).sendHeld(from: offset)
            case .endHeld: action = Relay(self).endHeld()
            case .streamOn:
                dropContent()
                client?.awaitContent()
                return readContent()
            case .sendContent(let piece): action = Relay(self).sendContent(piece)
            case .awaitResponse(let output, let held):
                return Relay(self).awaitResponse(output, held)
            case .endRequest(let output, let held): return Relay(self).endRequest(output, held)
            case .readLastWords: action = Relay(self).readLastWords()
            case .awaitOrigin: return Relay(self).watchOrigin()

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

    /// Judges the end of streamed content.
    private func judgeEnd() -> Flow.Action {
        switch judgedEnd() {
        case .send: return .sendContent(.last)
        case .stop(let action): return action
        case .collect, .hold, .append, .skim, .sendHashed, .judgeEnd:
            preconditionFailure("Exchange: the end of content that is held was judged")
        }
    }

    private func judgedEnd() -> Flow.Take { flow.endJudged(Judging(self).faultAtEnd) }

    /// Forwards held content before all of it was judged.
    private func releaseContent() -> Flow.Action {
        guard let held = content.heldBody else { return .none }
        if content.hasCostSignature { addFailure(now: MonotonicClock.nanoseconds) }
        content = .held(held)
        client?.stopDeadline()
        return .connect(.first)
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
        record.note(problem: why.problem)
        switch flow.clientClosed() {
        case .end(let release): end(release)
        // The request was being answered.
        default: leave()
        }
    }
}

extension ClientEnd {
    fileprivate var problem: String {
        switch self {
        case .aborted: "client-aborted"
        case .tooSlow: "client-timeout"
        case .drained: "drain-timeout"
        }
    }
}

// The request's content on its way from the client.
extension Exchange {
    /// Begins to read. First sends `100 Continue` where the client waits for it.
    private func readFirstContent() {
        guard let client else { return }
        if !client.hasContent { client.sendContinue() }
        client.awaitContent()
        readContent()
    }

    /// Reads content once, when there is some and it is wanted. Then the event loop's other
    /// connections have their turns.
    private func readContent() {
        var hasRead = false
        while flow.takesContent, let client {
            if hasRead { return client.resumeReading() }
            hasRead = !client.hasContent
            let before = client.contentCount
            let read = client.readContent { take($0) }
            proxy.tally.add(.uploadBytes, client.contentCount - before)
            if let key = flow.verdictState.admittedKey { proxy.judge.keyCheck.keep(key) }
            switch read {
            case .some: perform(flow.contentRead(isLast: false))
            case .complete:
                record.uploaded(at: MonotonicClock.nanoseconds)
                perform(flow.contentRead(isLast: true))
            case .none, .stopped, .closed: return
            case .malformed(let reason): return perform(flow.contentMalformed(reason))
            }
        }
    }

    /// Takes a piece; `false` when the request has another turn later.
    private func take(_ piece: Span<UInt8>) -> Bool {
        guard let client else { return false }
        return put(piece, flow.contentReceived(piece.count, isLast: client.isContentComplete))
    }

    private func put(_ piece: Span<UInt8>, _ take: Flow.Take) -> Bool {
        switch take {
        case .collect: call?.collect(piece)
        case .hold: return hold(piece)
        case .append: content.heldBody?.appendUnheld(piece)
        case .skim: content.hash(piece)
        case .send: origin?.append(piece)
        case .sendHashed:
            content.hash(piece)
            origin?.append(piece)
        case .judgeEnd:
            content.hash(piece)
            return put(piece, judgedEnd())
        case .stop(let action):
            perform(action)
            return false
        }
        return true
    }

    private func hold(_ piece: Span<UInt8>) -> Bool {
        guard let held = content.heldBody else { return false }
        let wasSpilled = held.isSpilled
        do throws(HeldBody.Fault) {
            try held.append(piece)
        } catch {
            if case .failed(let fault) = error { record.note(problem: "spill: \(fault)") }
            return put(piece, flow.holdFailed(error.refusal))
        }
        if held.isSpilled, !wasSpilled { proxy.tally.add(.bodiesSpilled) }
        return true
    }
}

// Events of the connection. Those of a connection that the request has left come late.
extension Exchange: OriginStreamOwner {
    func originConnected(_ connection: any OriginStream) {
        side.dialEnded()
        perform(Relay(self).connected(connection))
    }

    func originUnreachable(_ why: Unreached) {
        side.dialEnded()
        perform(Relay(self).unreached(why))
    }

    func originDrained(_ connection: any OriginStream) {
        guard origin === connection else { return }
        // Bytes that the server takes now say nothing about its response.
        if !flow.hasResponse { connection.setDeadline(milliseconds: nil) }
        perform(flow.originDrained())
        if flow.hasResponse { origin?.resumeReading() }
    }

    func originWriteFailed(_ connection: any OriginStream) {
        guard origin === connection else { return }
        perform(Relay(self).writeFailed(connection))
    }

    func originTimedOut(_ connection: any OriginStream) {
        guard origin === connection, let client else { return }
        perform(Relay(self).timedOut(connection, client))
    }

    func originReadable(_ connection: any OriginStream) {
        guard Relay(self).read(connection), client?.unsentBytes == 0 else { return }
        connection.resumeReading()
    }

    func originInterim(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) -> Bool {
        client?.sendInterim(head, bytes)
        return !flow.isOver
    }

    func originResponded(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        rest: Span<UInt8>
    ) -> Bool {
        record.status = head.status
        origin?.waited = Audit(self).originAnswered(at: MonotonicClock.nanoseconds)
        if head.fields.contains(.appAttestDeviceBits) {
            Querying(self).takeDeviceBits(head, bytes)
        }
        switch flow.responseBegan(ResponseKind(head, bytes)) {
        case .relay(let start, let held):
            if case .drop = held { dropContent() }
            if case .early = start { client?.endAfterResponse() }
            let notes = Answering(self).notes(in: head, bytes)
            client?.beginResponse(head, bytes, adding: notes)
            return true
        case .beginTunnel:
            Answering(self).beginTunnel(head, bytes, rest: rest)
            return false
        case let other: preconditionFailure("Exchange: \(other) at the head of a response")
        }
    }

    func originContent(_ piece: Span<UInt8>) {
        record.responseBytes &+= UInt64(piece.count)
        client?.append(piece)
    }
}

// The ends of a request.
extension Exchange {
    /// Answers, and ends the request.
    private func answer(_ reply: Reply, _ release: Release, then fate: ClientFate) {
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
    private func finish(_ release: Release) {
        self.release(release)
        guard let client else { return }
        leave()
        client.finish()
    }

    /// The response can't be completed, and the client must see that.
    private func cutOff(_ reply: Reply, _ release: Release) {
        guard let client else { return }
        Audit(self).answered(reply)
        self.release(release)
        leave()
        client.reset()
    }

    /// The client is gone.
    private func end(_ release: Release) {
        self.release(release)
        leave()
    }

    /// The request is over and its client's stream has been dealt with.
    private func leave() {
        Audit(self).requestEnded()
        letGo()
    }

    private func release(_ release: Release) { Relay(self).release(release) }
}
