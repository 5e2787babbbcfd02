import Cryptography
import EventLoops
import Glibc
import Histogram
import Rules
import Services
import Verification

// Events of the connections.
extension LoadLoop: ConnectionOwner {
    func answered(_ exchange: LoadExchange) {
        let now = MonotonicClock.nanoseconds
        if exchange.pool === callers { return challengesCame(exchange.answer, now) }
        judge(exchange, now)
        finishIfDone()
    }

    func failed(
        _ exchange: LoadExchange?,
        _ failure: ExchangeFailure,
        in pool: ConnectionPool
    ) {
        if pool === callers {
            isCalling = false
            callAt = MonotonicClock.nanoseconds + ConnectionPool.pause
            if awaitsReadiness { tell(.failed("the challenges endpoint: \(failure.rawValue)")) }
            return
        }
        if awaitsReadiness {
            let advice =
                failure == .noHTTP2
                ? "give its listener http2: on, or leave out --http2" : "is the gateway there?"
            return tell(.failed("\(plan.request.host): \(failure.rawValue); \(advice)"))
        }
        guard startAt > 0 else { return }
        measurements.failures[failure, default: 0] += 1
        interval.failures += 1
        let now = MonotonicClock.nanoseconds
        let stage = exchange?.request.stage ?? pacing.stage(at: now - min(startAt, now))
        measurements.count(in: stage) { $0.failed += 1 }
        guard !failure.isOfConnect, let exchange else { return }
        underWay -= 1
        measurements.outcomes.note(RequestOutcome(exchange.request.sending, failure))
        if let device = exchange.request.device { devices.end(device, isAdmitted: false) }
        finishIfDone()
    }

    /// Compares an answer with the expected one.
    private func judge(_ exchange: LoadExchange, _ now: UInt64) {
        let (request, answer) = (exchange.request, exchange.answer)
        let expectation = plan.expectation(of: request.sending)
        let finding = expectation.refusal == nil ? .admitted : finding(request, now)
        let isAsExpected = isExpected(answer, to: request.sending, finding)
        underWay -= 1
        let outcome = RequestOutcome(request.sending, answer, isAsExpected: isAsExpected)
        measurements.outcomes.note(outcome)
        interval.answered += 1
        measurements.endedAt = max(measurements.endedAt, now)
        if let device = request.device {
            // A changed request that an observing rule admits uses no counter.
            let isGood = request.sending.kind == .good
            devices.end(device, isAdmitted: answer.isAdmission && isGood)
            if request.sending == .opening, answer.status == 201 {
                sessions.open(answer.content, of: device, now: now)
            } else if saysEnded(answer) {
                sessions.drop(device)
            }
        }
        if plan.needsChallenges, !answer.challenge.isEmpty {
            challenges.add(answer.challenge, now: now)
        }
        if isAsExpected {
            if expectation.refusal != nil { note(finding, of: request, answer) }
            measurements.rows[request.sending.rawValue].asExpected += 1
            interval.latencies.record(now - request.due)
            measurements.count(in: request.stage) { $0.record(now - request.due) }
            if request.due >= startAt + pacing.warmUp {
                measurements[.measured] += 1
                measurements.recordAsExpected(
                    request.sending,
                    fromDue: now - request.due,
                    fromSent: now - request.sentAt
                )
            }
        } else {
            deviated(request, expected: finding == .admitted ? .init() : expectation, answer)
        }
        if answer.isAdmission, request.sending == .good, isReplaying {
            replays.keep(exchange.message, request.bucket)
        }
    }

    /// What has to happen to a request with a fault.
    private func finding(_ request: LoadRequest, _ now: UInt64) -> EnforcementForecast.Finding {
        let wall = Int64(time(nil))
        let elapsed = Int64(clamping: (now - request.sentAt) / 1_000_000_000)
        return forecast.finding(
            request.sending,
            request.bucket,
            from: UnixTime(seconds: wall - elapsed),
            to: UnixTime(seconds: wall)
        )
    }

    private func isExpected(
        _ answer: Answer,
        to sending: Sending,
        _ finding: EnforcementForecast.Finding
    ) -> Bool {
        if finding == .admitted { return answer.isAdmission }
        if finding == .unknown, answer.isAdmission { return true }
        let expectation = plan.expectation(of: sending)
        let reason = expectation.refusal?.rawValue ?? ""
        let isReason = answer.reason?.elementsEqual(reason.utf8) ?? false
        return answer.status == expectation.status && isReason
            || sending == .replayed && saysEnded(answer)
    }

    /// Counts what was admitted with a fault, or could have been.
    private func note(
        _ finding: EnforcementForecast.Finding,
        of request: LoadRequest,
        _ answer: Answer
    ) {
        if finding == .unknown { measurements[.uncertain] += 1 }
        guard answer.isAdmission else { return }
        if finding == .admitted { measurements[.unenforced] += 1 }
        if request.sending.isReplay { measurements[.unenforcedReplays] += 1 }
    }

    private func deviated(
        _ request: LoadRequest,
        expected expectation: LoadPlan.Expectation,
        _ answer: Answer
    ) {
        interval.deviations += 1
        measurements.count(in: request.stage) { $0.wrong += 1 }
        if answer.isAdmission, request.sending.isReplay {
            measurements[.admittedReplays] += 1
            measurements.count(in: request.stage) { $0.admittedReplays += 1 }
        }
        measurements.note(
            Deviation(
                number: place(of: request),
                sending: request.sending,
                expected: expectation.text,
                found: answer.isAdmission ? "admitted with \(answer.text)" : answer.text
            )
        )
    }

    /// Whether the session of the request has ended. A replayed request may belong to such a
    /// session.
    private func saysEnded(_ answer: Answer) -> Bool {
        guard plan.options.proof == .session, answer.status == 401, let reason = answer.reason
        else { return false }
        return [Refusal.sessionUnknown, .sessionExpired].contains {
            reason.elementsEqual($0.rawValue.utf8)
        }
    }
}
