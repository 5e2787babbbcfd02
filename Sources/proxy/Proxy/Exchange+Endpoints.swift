import Challenges
import ClientStreams
import Cryptography
import HTTPWire
import KeyStore
import Lanes
import Origins
import Telemetry
import Verification

// The gateway's own endpoints: challenges and enrolment.
extension Exchange {
    /// Collects the content, bounded, then serves the endpoint.
    func collect(for endpoint: Endpoint) {
        self.endpoint = endpoint
        switch endpoint {
        case .unknown: return answer(.error(status: 404, reason: "no-such-endpoint"))
        case .wrongMethod:
            return answer(
                .error(status: 405, reason: "method-not-allowed", fields: [("Allow", "POST")])
            )
        case .challenges, .keys: break
        }
        guard takesCall() else { return refuseForAddress() }
        if case .length(let length) = client?.contentFraming,
            length > UInt64(settings.limits.endpointBodyMax)
        {
            return refuse(.contentTooLarge)
        }
        guard case .waiting = upload else { return collectedIsComplete() }
        upload = .collecting
        beginUpload()
    }

    /// Collects a piece; `false` when the exchange took another turn.
    func collect(_ piece: Span<UInt8>) -> Bool {
        guard collected.count + piece.count <= settings.limits.endpointBodyMax else {
            upload = .abandoned
            refuse(.contentTooLarge)
            return false
        }
        piece.withUnsafeBufferPointer { collected.append(contentsOf: $0) }
        return true
    }

    func collectedIsComplete() {
        upload = .done
        client?.stopDeadline()
        let now = MonotonicClock.nanoseconds
        switch endpoint {
        case .challenges:
            let action = proxy.enrolment.challenges(
                for: collected.span,
                now: proxy.wallSeconds,
                charge: { oweCalls($0 - 1) }
            )
            serve(action)
        case .keys:
            guard mayVerify(now: now) else {
                proxy.tally.add(.addressVerificationsRefused)
                return refuseForAddress()
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
            serve(action)
        case .unknown, .wrongMethod, nil:
            preconditionFailure("Exchange: collected content without an endpoint")
        }
    }

    private func serve(_ action: Enrolment.Action) {
        switch action {
        case .answer(let status, let json):
            answer(LocalAnswer(status: status, json: json))
        case .refuse(let problem):
            if problem.status == 429 { proxy.tally.add(.enrolmentsThrottled) }
            answer(LocalAnswer(problem))
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
        }
    }

    private func enrolled(_ outcome: EnrolOutcome) {
        let action = proxy.enrolment.stored(outcome)
        if case .answer(201, _) = action { proxy.tally.add(.enrolments) }
        serve(action)
    }
}
