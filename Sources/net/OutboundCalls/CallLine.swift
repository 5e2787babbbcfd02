import Encodings
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

/// The circuit breaker of a host: after several consecutive failures the host is not called for a
/// while, then tried with one call.
///
/// Times are monotonic nanoseconds.
package struct CallBreaker: Sendable {
    /// Consecutive failures after which the host is not called for a while.
    package static let failuresMax = 5
    /// The length of that pause, by the number of consecutive pauses.
    package static let pauses = BackOff(first: .seconds(2), most: .seconds(120))
    /// The longest pause that the host itself can ask for.
    package static let retryAfterMax = Duration.seconds(3_600)

    private enum State {
        /// Calls are made; the last calls, by this number, failed. Leaves to `tripped`.
        case closed(failures: Int)
        /// No call is made before this time. Leaves to `halfOpen`.
        case tripped(until: UInt64, openings: Int)
        /// One call is under way, and its result decides. Leaves to `closed`, `tripped`.
        case halfOpen(openings: Int)
    }

    /// Whether a call may be made.
    package enum Admission: Equatable, Sendable {
        case call
        /// This one call tests whether the host works again.
        case probe
        case refused
    }

    /// The reported state. The raw value is a label of metrics.
    package enum Condition: String, CaseIterable, Hashable, Sendable {
        case closed, open
        case halfOpen = "half-open"
    }

    private var state = State.closed(failures: 0)

    package init() {}

    package var condition: Condition {
        switch state {
        case .closed: .closed
        case .tripped: .open
        case .halfOpen: .halfOpen
        }
    }

    /// Whether the last call failed, so that the next one should not reuse its connection.
    package var isDoubtful: Bool {
        if case .closed(failures: 0) = state { false } else { true }
    }

    /// A caller wants to make a call.
    package mutating func asked(now: UInt64) -> Admission {
        switch state {
        case .closed: return .call
        case .tripped(let until, let openings):
            guard now >= until else { return .refused }
            state = .halfOpen(openings: openings)
            return .probe
        case .halfOpen: return .refused
        }
    }

    /// The test call was not made after all.
    package mutating func probeDropped(now: UInt64) {
        switch state {
        case .halfOpen(let openings): state = .tripped(until: now, openings: openings)
        case .closed, .tripped: break
        }
    }

    /// The host answered properly.
    package mutating func succeeded(_ admission: Admission) {
        switch state {
        case .closed: state = .closed(failures: 0)
        case .halfOpen where admission == .probe: state = .closed(failures: 0)
        // A late result of a call from before the pause: it decides nothing.
        case .halfOpen, .tripped: break
        }
    }

    package mutating func failed(_ admission: Admission, now: UInt64, random: UInt64) {
        if case .closed(let failures) = state, failures + 1 < Self.failuresMax {
            state = .closed(failures: failures + 1)
        } else {
            throttled(admission, for: nil, now: now, random: random)
        }
    }

    /// The host reported too many calls. `pause` is the time that it asks for, if any.
    package mutating func throttled(
        _ admission: Admission,
        for pause: Duration?,
        now: UInt64,
        random: UInt64
    ) {
        switch state {
        case .closed: trip(1, asked: pause, now: now, random: random)
        case .halfOpen(let openings) where admission == .probe:
            trip(openings + 1, asked: pause, now: now, random: random)
        case .halfOpen, .tripped: break
        }
    }

    private mutating func trip(
        _ openings: Int,
        asked: Duration?,
        now: UInt64,
        random: UInt64
    ) {
        let own = Self.pauses.pause(after: openings, random: random)
        let pause = max(own, min(asked ?? .zero, Self.retryAfterMax))
        state = .tripped(until: now &+ pause.nanosecondCount, openings: openings)
    }
}

/// Exponential backoff: the pause doubles with each failure. It is random within the upper half, so
/// that callers which failed together do not retry together.
package struct BackOff: Hashable, Sendable {
    /// The longest pause after the first failure.
    package let first: Duration
    /// The longest pause.
    package let most: Duration

    package init(first: Duration, most: Duration) {
        self.first = first
        self.most = most
    }

    /// The pause after this number of consecutive failures. `random` is any number, fresh for each
    /// pause.
    package func pause(after failures: Int, random: UInt64) -> Duration {
        let whole = min(first.nanosecondCount, most.nanosecondCount)
        let doublings = UInt64(min(max(failures, 1) - 1, 40))
        let (grown, overflow) = whole.multipliedReportingOverflow(by: 1 << doublings)
        let longest = overflow ? most.nanosecondCount : min(grown, most.nanosecondCount)
        let half = longest / 2
        return .nanoseconds(Int64(clamping: half + random % (longest - half + 1)))
    }
}
