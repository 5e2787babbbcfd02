import ClientStreams
import Cryptography
import HTTPWire
import Lanes
import Rules
import Services
import Telemetry
import Verification

// The ends of a request.
extension Exchange {
    /// Answers, and ends the request.
    func answer(_ reply: Reply, _ release: Release, _ fate: Flow.ClientFate) {
        guard let client else { return }
        self.release(release)
        note(reply)
        switch fate {
        case .goesOn: break
        case .skips: if !client.dropContent() { client.endAfterResponse() }
        case .lingers: client.endAfterResponse()
        }
        var response = response(to: reply)
        response.name(record.id)
        switch response.outcome.row.ending {
        case .request: break
        case .connection: client.endAfterResponse()
        }
        record.outcome = response.outcome
        record.status = response.status
        record.note(problem: response.outcome.reason)
        record.responseBytes = flow.facts.method == .head ? 0 : UInt64(response.content.count)
        client.respond(response)
        finish(.none)
    }

    /// The response is complete: the client's connection goes on or ends.
    func finish(_ release: Release) {
        self.release(release)
        guard let client else { return }
        leave()
        client.finish()
    }

    /// The response can't be completed: the client must see that.
    func cutOff(_ reply: Reply, _ release: Release) {
        guard let client else { return }
        note(reply)
        self.release(release)
        leave()
        client.reset()
    }

    /// The client is gone.
    func end(_ release: Release) {
        self.release(release)
        leave()
    }

    /// The response to what the machine says.
    private func response(to reply: Reply) -> LocalResponse {
        switch reply {
        case .refused(let refusal), .declined(let refusal): problem(refusal)
        case .malformed(let reason): LocalResponse(.malformed(reason))
        case .failed(let fault): LocalResponse(.failed(fault.failure))
        case .contentTimeout: LocalResponse(.fault(.bodyTimeout))
        case .loopDetected: LocalResponse(.fault(.loopDetected))
        case .lastHop: LocalResponse(empty: .lastHop)
        case .allowed: allowance()
        case .service:
            if case .answered(let response) = content {
                response
            } else {
                preconditionFailure("Exchange: a service without an answer")
            }
        }
    }

    /// The problem document of a refusal.
    private func problem(_ refusal: Refusal) -> LocalResponse {
        let outcome = LocalOutcome.refused(refusal)
        var details = LocalResponse.Details()
        if outcome.row.nextStep == .signAgain { details.challenge = proxy.challenge() }
        // A rule that judges nothing has no refusal that says how to sign.
        details.signing = flow.rule.notice.challengeParameters
        if refusal == .addressThrottled {
            details.waitSeconds = Int(account.wait / 1_000_000_000) + 1
        }
        return LocalResponse(outcome, details)
    }

    /// Counts why the request ends, and remembers it for the log.
    private func note(_ reply: Reply) {
        switch reply {
        case .refused(let refusal):
            Audit(self).countVerdict()
            noteRefusal(refusal)
        case .declined(let refusal): noteRefusal(refusal)
        case .malformed(let reason):
            proxy.tally.add(.malformedRequests)
            record.outcome = .malformed(reason)
            record.note(problem: reason.rawValue)
        case .failed(let fault):
            if let counter = fault.counter { proxy.tally.add(counter) }
            if case .malformed(let reason) = fault {
                record.note(problem: reason.rawValue)
            } else {
                record.note(problem: fault.failure.rawValue)
            }
        case .contentTimeout:
            proxy.tally.add(.clientTimeouts)
            record.note(problem: LocalFault.bodyTimeout.rawValue)
        case .allowed: Audit(self).countVerdict()
        case .loopDetected, .lastHop, .service: break
        }
    }

    private func noteRefusal(_ refusal: Refusal) {
        if refusal == .addressThrottled { pauseAddress() }
        record.outcome = .refused(refusal)
        record.note(problem: refusal.rawValue)
    }
}

extension OriginFault {
    /// What the client is told.
    var failure: OriginFailure {
        switch self {
        case .unreachable: .originUnreachable
        case .connectTimeout, .timeout: .originTimeout
        case .noneUp: .originDown
        case .queueFull: .originQueueFull
        case .queueTimeout: .originQueueTimeout
        case .handshakeFailed: .originTLSFailed
        case .outOfDescriptors: .outOfDescriptors
        case .closed: .originClosed
        case .malformed: .responseMalformed
        case .tooManyInterimResponses: .tooManyInterimResponses
        }
    }

    /// What is counted; a connect that fails is counted by itself.
    var counter: Counter? {
        switch self {
        case .unreachable, .connectTimeout, .handshakeFailed, .noneUp, .queueFull, .queueTimeout,
            .outOfDescriptors:
            nil
        case .closed: .originFailures
        case .timeout: .originTimeouts
        case .malformed, .tooManyInterimResponses: .originMalformed
        }
    }
}

// What the gateway answers itself.
extension Exchange {
    /// Asks the service.
    func serve() -> Flow.Action {
        guard case .collected(let service, let collected) = content else {
            preconditionFailure("Exchange: collected content without a service")
        }
        client?.stopDeadline()
        let now = MonotonicClock.nanoseconds
        var request = ServiceRequest(
            content: collected,
            grant: flow.judgement.verdict?.ruling.grant,
            now: UnixTime(seconds: proxy.wallSeconds),
            tick: now,
            address: account.address
        )
        request.entry = account.entry
        if service.tellsCaller { request.caller = caller }
        request.format = record.format
        switch service.cost {
        case .nothing, .call: break
        case .verification: request.verificationWait = verificationWait(now: now)
        }
        switch service.service.answer(request) {
        case .now(let result): return served(result)
        case .later(let pending):
            wait(for: pending)
            return .none
        case .afterCommit(let pending):
            proxy.waitToStore(self)
            wait(for: pending)
            return .none
        }
    }

    /// Who calls, as an audit log names them.
    private var caller: String {
        client?.peerUser.map { "uid \($0)" } ?? account.address.text
    }

    private func wait(for pending: PendingAnswer) {
        let lane = lane
        let waiting = LaneBound(self, on: lane)
        pending { result in
            lane.perform {
                let exchange = waiting.value
                exchange.perform(exchange.served(result))
                exchange.proxy.commitQueue.letGoOfStored()
            }
        }
    }

    /// What the service stores is not stored in time. A key whose commit ends later is enrolled.
    func storingTimedOut() { perform(flow.storingTimedOut()) }

    /// The request may have ended meanwhile. What was done is counted all the same.
    private func served(_ result: ServiceResult) -> Flow.Action {
        oweCalls(result.callsOwed)
        if result.verifiedInVain { addFailure(now: MonotonicClock.nanoseconds) }
        if let counter = result.counter { proxy.tally.add(counter, result.countedTimes) }
        guard isUnderWay else { return flow.served() }
        if case .notEnrolled(.addressThrottled) = result.response.outcome { pauseAddress() }
        content = .answered(result.response)
        return flow.served()
    }
}
