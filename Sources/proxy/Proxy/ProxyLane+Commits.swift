package import KeyStore
import Lanes
import Telemetry

// Requests that wait for a commit.
extension ProxyLane {
    /// Lets a request wait for the commit with this ticket, for ``Timeouts/commit`` at most.
    func wait(for ticket: CommitTicket, _ exchange: Exchange) {
        let now = MonotonicClock.nanoseconds
        tally.add(.commitWaits)
        commitQueue.wait(for: ticket, exchange, now: now)
        watch(since: now)
    }

    /// Lets a request wait as long for a service that stores something.
    func waitToStore(_ exchange: Exchange) {
        let now = MonotonicClock.nanoseconds
        commitQueue.wait(exchange, now: now)
        watch(since: now)
    }

    /// Lets the alarm ring when a request that waits from now on has waited too long, or earlier.
    private func watch(since now: UInt64) {
        switch commitWatch {
        case .on: break
        case .off(let alarm): setAlarm(alarm, since: now)
        case .none:
            // Where there is no descriptor for it, the next request that waits tries again.
            guard let alarm = try? Alarm(on: lane) else { return }
            alarm.rang = { [self] in alarmRang(alarm) }
            setAlarm(alarm, since: now)
        }
    }

    /// A batch has ended, with an outcome for each request that waits for one of its tickets.
    package func commitEnded(_ report: CommitReport) {
        // One reading for the batch: its first request has waited as long as its last.
        let now = MonotonicClock.nanoseconds
        while let waiting = commitQueue.next(through: report.tickets.upperBound) {
            tally.add(.commitWait, nanoseconds: now &- waiting.since)
            waiting.exchange.committed(report.decision(of: waiting.ticket))
        }
    }

    private func alarmRang(_ alarm: Alarm) {
        commitWatch = .off(alarm)
        let now = MonotonicClock.nanoseconds
        // The time may be longer than the machine is up, after a reload.
        let latest = now > commitNanoseconds ? now - commitNanoseconds : 0
        while let waiting = commitQueue.next(since: latest) {
            tally.add(.commitWait, nanoseconds: now &- waiting.since)
            waiting.exchange.commitTimedOut()
        }
        while let exchange = commitQueue.nextStoring(since: latest) { exchange.storingTimedOut() }
        if let since = commitQueue.since { setAlarm(alarm, since: since) }
    }

    /// The time to wait may have changed.
    func commitTimeChanged() {
        guard case .on(let alarm) = commitWatch else { return }
        commitWatch = .off(alarm)
        if let since = commitQueue.since { setAlarm(alarm, since: since) }
    }

    /// It is not moved when the commit ends: a request that is answered in time costs nothing here.
    private func setAlarm(_ alarm: Alarm, since moment: UInt64) {
        commitWatch = .on(alarm)
        alarm.set(nanoseconds: moment &+ commitNanoseconds)
    }

    private var commitNanoseconds: UInt64 { settings.timeouts.commit &* 1_000_000 }
}
