import DequeModule
import EventLoops
import KeyStore
import Telemetry

/// A request that waits for a commit.
protocol CommitWaiter: AnyObject {
    /// Whether it has ended meanwhile.
    var isOver: Bool { get }
    /// The commit with its ticket has ended; `nil` where it has not in time, and no later report
    /// follows.
    ///
    /// - since, now: monotonic nanoseconds.
    func commitEnded(_ decision: ConsumeDecision?, since: UInt64, until now: UInt64)
    /// What its service or its token's check stores has not been stored in time. That goes on.
    func storingTimedOut()
}

/// Requests of one event loop that wait for a commit, for ``Timeouts/commit`` at most. Some wait
/// for a ticket, others for a service that stores something.
///
/// An event loop takes tickets in order. So the queue of tickets is sorted by ticket and by time,
/// the other queue by time.
final class CommitQueue {
    private struct Waiting {
        let request: any CommitWaiter
        /// When the wait began, monotonic nanoseconds.
        let since: UInt64
        let ticket: CommitTicket
    }

    /// A request whose service stores something.
    private struct Storing {
        let request: any CommitWaiter
        /// As in ``Waiting``.
        let since: UInt64
    }

    /// The alarm that ends waits. It is created when a request first waits.
    private enum Watch {
        case none
        /// No request waits. The alarm may fire nevertheless.
        case off(Alarm)
        /// It fires when the first request may have waited too long, or earlier.
        case on(Alarm)
    }

    /// The event loop holds the queue.
    private unowned let proxy: ProxyLoop
    private var watch = Watch.none
    private var waiting: Deque<Waiting> = []
    private var storing: Deque<Storing> = []

    init(_ proxy: ProxyLoop) { self.proxy = proxy }

    // MARK: Requests

    /// Makes a request wait for the commit with this ticket.
    func wait(for ticket: CommitTicket, _ request: any CommitWaiter) {
        let now = MonotonicClock.nanoseconds
        proxy.tally.add(.commitWaits)
        waiting.append(Waiting(request: request, since: now, ticket: ticket))
        rings(now)
    }

    /// Makes a request wait as long for a service that stores something.
    func waitToStore(_ request: any CommitWaiter) {
        let now = MonotonicClock.nanoseconds
        storing.append(Storing(request: request, since: now))
        rings(now)
    }

    /// A batch has ended, with an outcome for each request that waits for one of its tickets.
    func ended(_ report: CommitReport) {
        // One clock reading for the batch: its first request has waited as long as its last.
        let now = MonotonicClock.nanoseconds
        let last = report.tickets.upperBound
        while let first = waiting.first, first.ticket <= last {
            waiting.removeFirst()
            end(first, report.decision(of: first.ticket), at: now)
        }
    }

    private func end(_ wait: Waiting, _ decision: ConsumeDecision?, at now: UInt64) {
        proxy.tally.add(.commitWait, nanoseconds: now &- wait.since)
        wait.request.commitEnded(decision, since: wait.since, until: now)
    }

    /// A request has the answer that it waited for, and goes on. The answers come nearly in the
    /// order of the waits.
    func stored(_ request: any CommitWaiter) {
        guard let place = storing.firstIndex(where: { $0.request === request }) else { return }
        storing.remove(at: place)
    }

    /// Releases the requests at the front that have ended; called when one has its answer. A
    /// request that has ended stays while an earlier one waits.
    func letGoOfStored() {
        while let first = storing.first, first.request.isOver { storing.removeFirst() }
    }

    /// Releases all requests and the alarm.
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

    /// Sets the alarm for a request that waits from now on, unless it fires earlier anyway.
    private func rings(_ now: UInt64) {
        switch watch {
        case .on: break
        case .off(let alarm): set(alarm, since: now)
        case .none:
            // If there is no descriptor for it, the next waiting request tries again.
            guard let alarm = try? Alarm(on: proxy.loop) else { return }
            alarm.rang = { [self] in rang(alarm) }
            set(alarm, since: now)
        }
    }

    private func rang(_ alarm: Alarm) {
        watch = .off(alarm)
        let now = MonotonicClock.nanoseconds
        // After a reload the wait may be longer than the machine's uptime.
        let latest = now > nanoseconds ? now - nanoseconds : 0
        while let first = waiting.first, first.since <= latest {
            waiting.removeFirst()
            end(first, nil, at: now)
        }
        while let first = storing.first, first.since <= latest {
            storing.removeFirst()
            // A key whose commit ends later is still enrolled.
            first.request.storingTimedOut()
        }
        setAgain(alarm)
    }

    /// The maximum wait may have changed.
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

    /// The alarm is not moved when the commit ends: a request that is answered in time costs
    /// nothing here.
    private func set(_ alarm: Alarm, since moment: UInt64) {
        watch = .on(alarm)
        alarm.set(nanoseconds: moment &+ nanoseconds)
    }

    private var nanoseconds: UInt64 { proxy.settings.timeouts.commit &* 1_000_000 }
}
