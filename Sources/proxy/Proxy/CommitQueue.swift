import DequeModule
import EventLoops
import KeyStore
import Telemetry

/// Requests of one event loop that wait for a commit, for ``Timeouts/commit`` at most: those that
/// wait for a ticket, and those of services that store something.
///
/// Tickets are taken in order on an event loop, so the first queue is sorted by ticket and by time,
/// the second one by time.
final class CommitQueue {
    private struct Waiting {
        let exchange: Exchange
        /// When the wait began, monotonic nanoseconds.
        let since: UInt64
        let ticket: CommitTicket
    }

    /// A request whose service stores something.
    private struct Storing {
        let exchange: Exchange
        /// As in ``Waiting``.
        let since: UInt64
    }

    /// The alarm that ends waits. It is made when a request first waits.
    private enum Watch {
        case none
        /// No request waits. It may ring all the same.
        case off(Alarm)
        /// It rings when the first request may have waited too long, or earlier.
        case on(Alarm)
    }

    /// The event loop holds the queue.
    private unowned let proxy: ProxyLoop
    private var watch = Watch.none
    private var waiting: Deque<Waiting> = []
    private var storing: Deque<Storing> = []

    init(_ proxy: ProxyLoop) { self.proxy = proxy }

    // MARK: Requests

    /// Lets a request wait for the commit with this ticket.
    func wait(for ticket: CommitTicket, _ exchange: Exchange) {
        let now = MonotonicClock.nanoseconds
        proxy.tally.add(.commitWaits)
        waiting.append(Waiting(exchange: exchange, since: now, ticket: ticket))
        rings(now)
    }

    /// Lets a request wait as long for a service that stores something.
    func waitToStore(_ exchange: Exchange) {
        let now = MonotonicClock.nanoseconds
        storing.append(Storing(exchange: exchange, since: now))
        rings(now)
    }

    /// A batch has ended, with an outcome for each request that waits for one of its tickets.
    func ended(_ report: CommitReport) {
        // One reading for the batch: its first request has waited as long as its last.
        let now = MonotonicClock.nanoseconds
        let last = report.tickets.upperBound
        while let first = waiting.first, first.ticket <= last {
            waiting.removeFirst()
            proxy.tally.add(.commitWait, nanoseconds: now &- first.since)
            first.exchange.committed(report.decision(of: first.ticket))
        }
    }

    /// Lets go of the requests at the front that have ended; called when one has its answer. One
    /// that has ended after another waits for that.
    func letGoOfStored() {
        while let first = storing.first, first.exchange.flow.isOver { storing.removeFirst() }
    }

    /// Lets go of all, and of the alarm.
    func end() {
        switch watch {
        case .none: break
        case .off(let alarm), .on(let alarm):
            alarm.close()
            alarm.rang = nil
        }
        watch = .none
        waiting = []
        storing = []
    }

    // MARK: The alarm

    /// Lets the alarm ring when a request that waits from now on has waited too long, or earlier.
    private func rings(_ now: UInt64) {
        switch watch {
        case .on: break
        case .off(let alarm): set(alarm, since: now)
        case .none:
            // Where there is no descriptor for it, the next request that waits tries again.
            guard let alarm = try? Alarm(on: proxy.loop) else { return }
            alarm.rang = { [self] in rang(alarm) }
            set(alarm, since: now)
        }
    }

    private func rang(_ alarm: Alarm) {
        watch = .off(alarm)
        let now = MonotonicClock.nanoseconds
        // The time may be longer than the machine is up, after a reload.
        let latest = now > nanoseconds ? now - nanoseconds : 0
        while let first = waiting.first, first.since <= latest {
            waiting.removeFirst()
            proxy.tally.add(.commitWait, nanoseconds: now &- first.since)
            first.exchange.perform(first.exchange.flow.commitTimedOut())
        }
        while let first = storing.first, first.since <= latest {
            storing.removeFirst()
            // A key whose commit ends later is enrolled.
            first.exchange.perform(first.exchange.flow.storingTimedOut())
        }
        setAgain(alarm)
    }

    /// The time to wait may have changed.
    func timeChanged() {
        guard case .on(let alarm) = watch else { return }
        watch = .off(alarm)
        setAgain(alarm)
    }

    private func setAgain(_ alarm: Alarm) {
        switch (waiting.first?.since, storing.first?.since) {
        case (let one?, let other?): set(alarm, since: min(one, other))
        case (let one, let other): if let since = one ?? other { set(alarm, since: since) }
        }
    }

    /// It is not moved when the commit ends: a request that is answered in time costs nothing here.
    private func set(_ alarm: Alarm, since moment: UInt64) {
        watch = .on(alarm)
        alarm.set(nanoseconds: moment &+ nanoseconds)
    }

    private var nanoseconds: UInt64 { proxy.settings.timeouts.commit &* 1_000_000 }
}
