import Challenges
import ClientStreams
import Cryptography
import HTTPWire
import KeyStore
import Lanes
import Origins
import RequestFlow
import Telemetry
import Verification

// The gateway's own endpoints: challenges and enrolment.
extension Exchange {
    /// Whether the endpoint is served, and what it takes.
    func locate(_ endpoint: Endpoint) -> RequestFlow.Action {
        record.endpoint = endpoint
        switch endpoint {
        case .challenges, .keys:
            let contentMax = UInt64(settings.limits.endpointBodyMax)
            return flow.located(
                .service(ServiceDemands(contentMax: contentMax, isCharged: true))
            )
        case .unknown: content = .answered(.error(status: 404, reason: "no-such-endpoint"))
        case .wrongMethod:
            let fields = [(name: "Allow", value: "POST")]
            content = .answered(
                .error(status: 405, reason: "method-not-allowed", fields: fields)
            )
        }
        return flow.serviceRefused()
    }

    /// Asks the endpoint.
    func serve() -> RequestFlow.Action {
        client?.stopDeadline()
        let now = MonotonicClock.nanoseconds
        let collected = if case .collected(let bytes) = content { bytes } else { [UInt8]() }
        switch record.endpoint {
        case .challenges:
            let action = proxy.enrolment.challenges(
                for: collected.span,
                now: proxy.wallSeconds,
                charge: { oweCalls($0 - 1) }
            )
            return serve(action)
        case .keys:
            guard mayVerify(now: now) else {
                proxy.tally.add(.addressVerificationsRefused)
                return flow.addressThrottled()
            }
            let action = proxy.enrolment.enrol(
                collected.span,
                now: UnixTime(seconds: proxy.wallSeconds),
                at: now
            )
            // 400 and 403 are about the attestation; 401 is about its challenge, 429 about others.
            if case .refuse(let problem) = action, [400, 403].contains(problem.status) {
                addFailure(now: now)
            }
            return serve(action)
        case .unknown, .wrongMethod, nil:
            preconditionFailure("Exchange: collected content without an endpoint")
        }
    }

    private func serve(_ action: Enrolment.Action) -> RequestFlow.Action {
        switch action {
        case .answer(let status, let json):
            content = .answered(LocalAnswer(status: status, json: json))
        case .refuse(let problem):
            if problem.status == 429 { proxy.tally.add(.enrolmentsThrottled) }
            content = .answered(LocalAnswer(problem))
        case .store(let record):
            let lane = lane
            let waiting = LaneBound(self, on: lane)
            proxy.keys.enrol(record) { outcome in
                lane.perform {
                    let exchange = waiting.value
                    guard exchange.isUnderWay else { return }
                    exchange.enrolled(outcome)
                }
            }
            return .none
        }
        return flow.served()
    }

    private func enrolled(_ outcome: EnrolOutcome) {
        let action = proxy.enrolment.stored(outcome)
        if case .answer(201, _) = action { proxy.tally.add(.enrolments) }
        perform(serve(action))
    }
}
