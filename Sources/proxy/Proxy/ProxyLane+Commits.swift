import DequeModule
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
        switch commitQueue.alarm {
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
        commitQueue.alarm = .off(alarm)
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
        guard case .on(let alarm) = commitQueue.alarm else { return }
        commitQueue.alarm = .off(alarm)
        if let since = commitQueue.since { setAlarm(alarm, since: since) }
    }

    /// It is not moved when the commit ends: a request that is answered in time costs nothing here.
    private func setAlarm(_ alarm: Alarm, since moment: UInt64) {
        commitQueue.alarm = .on(alarm)
        alarm.set(nanoseconds: moment &+ commitNanoseconds)
    }

    private var commitNanoseconds: UInt64 { settings.timeouts.commit &* 1_000_000 }
}

/// Requests of one lane that wait for a commit: those that wait for a ticket, and those of services
/// that store something.
///
/// Tickets are taken in order on a lane, so the first queue is sorted by ticket and by time, the
/// second one by time.
struct CommitQueue {
    struct Waiting {
        let exchange: Exchange
        /// When the wait began, monotonic nanoseconds.
        let since: UInt64
        let ticket: CommitTicket
    }

    /// A request whose service stores something.
    struct Storing {
        let exchange: Exchange
        /// As in ``Waiting``.
        let since: UInt64
    }

    var alarm = CommitWatch.none
    private var waiting: Deque<Waiting> = []
    private var storing: Deque<Storing> = []

    /// When the request that waits longest has begun to, monotonic nanoseconds; `nil` when none
    /// waits.
    var since: UInt64? {
        switch (waiting.first?.since, storing.first?.since) {
        case (let one?, let other?): min(one, other)
        case (let one, let other): one ?? other
        }
    }

    /// Adds a request that waits from `now` on, monotonic nanoseconds.
    mutating func wait(for ticket: CommitTicket, _ exchange: Exchange, now: UInt64) {
        waiting.append(Waiting(exchange: exchange, since: now, ticket: ticket))
    }

    /// Adds a request whose service stores something.
    mutating func wait(_ exchange: Exchange, now: UInt64) {
        storing.append(Storing(exchange: exchange, since: now))
    }

    /// Lets go of the requests at the front that have ended; called when one has its answer. One
    /// that has ended behind another waits for that.
    mutating func letGoOfStored() {
        while let first = storing.first, !first.exchange.isUnderWay { storing.removeFirst() }
    }

    /// Takes the first request whose ticket is at most this one; `nil` when there is none. Its
    /// client may have gone.
    mutating func next(through ticket: CommitTicket) -> Waiting? {
        guard let first = waiting.first, first.ticket <= ticket else { return nil }
        return waiting.removeFirst()
    }

    /// Takes the first request that has waited for its ticket since this moment or longer; `nil`
    /// when there is none. Its client may have gone.
    mutating func next(since moment: UInt64) -> Waiting? {
        guard let first = waiting.first, first.since <= moment else { return nil }
        return waiting.removeFirst()
    }

    /// The same of those whose service stores something. It may have ended.
    mutating func nextStoring(since moment: UInt64) -> Exchange? {
        guard let first = storing.first, first.since <= moment else { return nil }
        return storing.removeFirst().exchange
    }
}

/// The alarm that ends waits for commits. It is made when a request first waits for one.
enum CommitWatch {
    case none
    /// No request waits. It may ring all the same.
    case off(Alarm)
    /// It rings when the first request may have waited too long, or earlier.
    case on(Alarm)

    /// Lets go of the alarm, and has it let go of what it would call.
    mutating func end() {
        switch self {
        case .none: break
        case .off(let alarm), .on(let alarm):
            alarm.close()
            alarm.rang = nil
        }
        self = .none
    }
}
