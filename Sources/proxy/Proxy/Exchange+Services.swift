import ClientStreams
import Cryptography
import HTTPWire
import Lanes
import RequestFlow
import Services
import Telemetry
import Verification

// What the gateway answers itself.
extension Exchange {
    /// Says what the service takes.
    func locate(_ service: ServiceEntry) -> RequestFlow.Action {
        record.service = service.name
        content = .collected(service, [])
        let isCharged =
            switch service.cost {
            case .nothing: false
            case .call, .verification: true
            }
        return flow.located(
            .service(
                ServiceDemands(
                    contentMax: UInt64(settings.limits.endpointBodyMax),
                    isCharged: isCharged,
                    rule: service.rule
                )
            )
        )
    }

    /// Asks the service.
    func serve() -> RequestFlow.Action {
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
    private func served(_ result: ServiceResult) -> RequestFlow.Action {
        oweCalls(result.callsOwed)
        if result.verifiedInVain { addFailure(now: MonotonicClock.nanoseconds) }
        if let counter = result.counter { proxy.tally.add(counter, result.countedTimes) }
        guard isUnderWay else { return flow.served() }
        if case .notEnrolled(.addressThrottled) = result.response.outcome { pauseAddress() }
        content = .answered(result.response)
        return flow.served()
    }
}
