import Cryptography
import EventLoops
import Glibc
import Histogram
import Services
import Verification

// Events of the connections.
extension LoadLoop: ConnectionOwner {
    /// Begins to open a connection; `false` when that fails at once.
    @discardableResult
    func openConnection() -> Bool {
        let made = LoadConnection.open(
            plan.server,
            for: self,
            timeout: plan.options.connectTimeout,
            on: loop
        )
        if made == nil { connectFailed(.connectFailed) } else { openCount += 1 }
        return made != nil
    }

    /// Opens missing connections, with a pause in between when the gateway refuses.
    func reopen() {
        guard isReady, isIssuing, MonotonicClock.nanoseconds >= reopenAt else { return }
        let missing = connectionCount - openCount
        for _ in 0..<max(missing, 0) { openConnection() }
    }

    /// Replaces connections that the gateway has closed while assertions were signed: it does not
    /// wait long for a first request. The event loop reports `ready` when all are open.
    func reconnect() {
        isReady = false
        while openCount < connectionCount, openConnection() {}
        checkReadiness()
    }

    func connected(_ connection: LoadConnection) {
        if connection === caller { return callForChallenges() }
        idle.append(connection)
        if isReady { pump() } else { checkReadiness() }
    }

    func retired(_ connection: LoadConnection) {
        if connection === caller {
            caller = nil
            return
        }
        openCount -= 1
        idle.removeAll { $0 === connection }
        if isReady { reopen() } else { openConnection() }
    }

    func answered(_ connection: LoadConnection) {
        let now = MonotonicClock.nanoseconds
        if connection === caller { return challengesCame(connection, now) }
        judge(connection, now)
        if connection.isClosed {
            openCount -= 1
            reopen()
        } else {
            idle.append(connection)
        }
        pump()
        finishIfDone()
    }

    func failed(_ connection: LoadConnection, _ failure: ExchangeFailure) {
        if connection === caller {
            caller = nil
            isCalling = false
            callAt = MonotonicClock.nanoseconds + Self.pause
            if !isReady { tell(.failed("the challenges endpoint: \(failure.rawValue)")) }
            return
        }
        openCount -= 1
        switch failure {
        case .connectFailed, .connectTimeout: connectFailed(failure)
        case .responseTimeout, .connectionBroken, .responseMalformed:
            note(failure)
            underWay -= 1
            if let device = connection.request.device { devices.end(device, isAdmitted: false) }
            reopen()
            pump()
            finishIfDone()
        }
    }

    /// Nanoseconds between attempts that the gateway refuses.
    static let pause: UInt64 = 200_000_000

    private func connectFailed(_ failure: ExchangeFailure) {
        guard isReady else {
            return tell(.failed("\(plan.host): \(failure.rawValue); is the gateway there?"))
        }
        note(failure)
        reopenAt = MonotonicClock.nanoseconds + Self.pause
    }

    private func note(_ failure: ExchangeFailure) {
        measurements.failures[failure, default: 0] += 1
        interval.failures += 1
    }

    /// Compares an answer with the expected one.
    private func judge(_ connection: LoadConnection, _ now: UInt64) {
        let request = connection.request
        let expectation = expectations[request.sending.rawValue]
        let isAdmitted = connection.answer.isAdmission
        underWay -= 1
        interval.answered += 1
        measurements.endedAt = max(measurements.endedAt, now)
        let finding = expectation.refusal == nil ? .admitted : finding(request, now)
        let isAsExpected = isExpected(
            connection.answer,
            finding: finding,
            expectation: expectation,
            sending: request.sending
        )
        if isAsExpected, expectation.refusal != nil { note(finding, request, isAdmitted) }
        if let device = request.device {
            // A changed request that an observing rule admits uses no counter.
            devices.end(device, isAdmitted: isAdmitted && request.sending.kind == .good)
            noteSession(of: device, request.sending, connection.answer, now)
        }
        if needsChallenge, !connection.answer.challenge.isEmpty {
            challenges.add(connection.answer.challenge, now: now)
        }
        if isAsExpected {
            measurements.rows[request.sending.rawValue].asExpected += 1
            interval.latencies.record(now - request.due)
            if request.due >= startAt + pacing.warmUp {
                measurements.startedAt = startAt + pacing.warmUp
                measurements.measuredCount += 1
                measurements.recordAsExpected(
                    request.sending,
                    fromDue: now - request.due,
                    fromSent: now - request.sentAt
                )
            }
        } else {
            let expected = finding == .admitted ? Expectation.admitted : expectation
            deviated(request, expectation: expected, answer: connection.answer)
        }
        if isAdmitted, request.sending == .good, isReplaying {
            replays.keep(&connection.message, request.bucket)
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
        finding: EnforcementForecast.Finding,
        expectation: Expectation,
        sending: Sending
    ) -> Bool {
        guard let refusal = expectation.refusal, finding != .admitted else {
            return answer.isAdmission
        }
        if finding == .unknown, answer.isAdmission { return true }
        let isReason = answer.reason.map {
            answer.content[$0].elementsEqual(expectation.reason)
        }
        return answer.status == LocalOutcome.refused(refusal).row.status && isReason == true
            || sending == .replayed && saysEnded(answer)
    }

    /// Counts what was admitted with a fault, or could have been.
    private func note(
        _ finding: EnforcementForecast.Finding,
        _ request: LoadRequest,
        _ isAdmitted: Bool
    ) {
        if finding == .unknown { measurements.uncertainCount += 1 }
        guard isAdmitted else { return }
        if finding == .admitted { measurements.unenforcedCount += 1 }
        if request.sending.isReplay { measurements.unenforcedReplays += 1 }
    }

    private func deviated(_ request: LoadRequest, expectation: Expectation, answer: Answer) {
        interval.deviations += 1
        if answer.isAdmission, request.sending.isReplay { measurements.admittedReplays += 1 }
        measurements.note(
            Deviation(
                number: request.number * UInt64(loopCount) + UInt64(number),
                sending: request.sending,
                expected: expectation.text,
                found: answer.isAdmission ? "admitted with \(answer.text)" : answer.text
            )
        )
    }
}
