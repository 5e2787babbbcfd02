package import Verification

/// The calls to one host: the waiting ones, those under way, and which may begin.
///
/// Its driver makes the calls and reports their results. Times are monotonic nanoseconds.
package struct CallLine: Sendable {
    /// The name of a call here. The driver chooses it, each one only once.
    package typealias Ticket = UInt64

    package struct Limits: Hashable, Sendable {
        /// The most concurrent calls.
        package var concurrent: Int
        /// The most waiting calls.
        package var queue: Int
        /// The average rate of calls begun.
        package var rate: TokenRate

        package init(concurrent: Int, queue: Int, perSecond: Int) {
            self.concurrent = concurrent
            self.queue = queue
            rate = TokenRate(perSecond, burst: max(perSecond / 10, 1))
        }
    }

    /// The next step.
    package enum Step: Equatable, Sendable {
        /// Begin this call; then ask for the next step.
        case begin(Ticket)
        /// This call has waited too long; ask for the next step.
        case drop(Ticket)
        /// Ask again in this number of nanoseconds: the rate allows no call before.
        case wait(UInt64)
        /// Ask again after the next event.
        case idle
    }

    private struct Waiting {
        let ticket: Ticket
        let admission: CallBreaker.Admission
        let since: UInt64
        let patience: Duration

        func isOver(at now: UInt64) -> Bool {
            .nanoseconds(Int64(clamping: now &- since)) > patience
        }
    }

    package var limits: Limits
    private var waiting: [Waiting] = []
    private var underWay: [Ticket: CallBreaker.Admission] = [:]
    private var breaker = CallBreaker()
    /// The time when the bucket of the rate is full.
    private var fullAt: UInt64 = 0

    package init(_ limits: Limits) { self.limits = limits }

    package var waitingCount: Int { waiting.count }
    package var underWayCount: Int { underWay.count }
    package var condition: CallBreaker.Condition { breaker.condition }
    package var isDoubtful: Bool { breaker.isDoubtful }

    /// A call was handed in.
    ///
    /// - patience: the longest wait. A call that begins late times out, and the breaker would count
    ///   that as a failure of the host.
    /// - Returns: why it is not accepted; `nil` when it waits now.
    package mutating func offered(
        _ ticket: Ticket,
        patience: Duration,
        now: UInt64
    ) -> CallFailure? {
        guard waiting.count < limits.queue else { return .queueFull }
        let admission = breaker.asked(now: now)
        guard admission != .refused else { return .breakerOpen }
        let call = Waiting(ticket: ticket, admission: admission, since: now, patience: patience)
        waiting.append(call)
        return nil
    }

    package mutating func next(now: UInt64) -> Step {
        guard let first = waiting.first, underWay.count < limits.concurrent else { return .idle }
        if first.isOver(at: now) {
            waiting.removeFirst()
            if first.admission == .probe { breaker.probeDropped(now: now) }
            return .drop(first.ticket)
        }
        if let pause = limits.rate.take(from: &fullAt, now: now) { return .wait(pause) }
        waiting.removeFirst()
        underWay[first.ticket] = first.admission
        return .begin(first.ticket)
    }

    /// A call under way is repeated with another token: it keeps its place.
    package mutating func repeated(now: UInt64) {
        // If there is no token left, the next call waits a little less than it should.
        _ = limits.rate.take(from: &fullAt, now: now)
    }

    /// A call's time ended while it waited; `false` when it is under way or unknown.
    package mutating func gaveUp(_ ticket: Ticket, now: UInt64) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.ticket == ticket }) else { return false }
        if waiting.remove(at: index).admission == .probe { breaker.probeDropped(now: now) }
        return true
    }

    /// A call that was begun has ended.
    ///
    /// - Returns: waiting calls that are not made, since the host is in backoff from now on.
    package mutating func ended(
        _ ticket: Ticket,
        _ outcome: CallOutcome,
        now: UInt64,
        random: UInt64
    ) -> [Ticket] {
        guard let admission = underWay.removeValue(forKey: ticket) else { return [] }
        switch outcome {
        case .worked: breaker.succeeded(admission)
        case .failed: breaker.failed(admission, now: now, random: random)
        case .throttled(let pause):
            breaker.throttled(admission, for: pause, now: now, random: random)
        case .undecided: if admission == .probe { breaker.probeDropped(now: now) }
        }
        guard breaker.condition == .open else { return [] }
        defer { waiting = [] }
        return waiting.map(\.ticket)
    }

    /// All calls that wait are given up.
    package mutating func cleared(now: UInt64) -> [Ticket] {
        if waiting.contains(where: { $0.admission == .probe }) { breaker.probeDropped(now: now) }
        defer { waiting = [] }
        return waiting.map(\.ticket)
    }
}
