import Encodings

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
        switch state {
        case .closed(let failures) where failures + 1 < Self.failuresMax:
            state = .closed(failures: failures + 1)
        case .closed: trip(1, nil, now, random)
        case .halfOpen(let openings) where admission == .probe: trip(openings + 1, nil, now, random)
        case .halfOpen, .tripped: break
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
        case .closed: trip(1, pause, now, random)
        case .halfOpen(let openings) where admission == .probe:
            trip(openings + 1, pause, now, random)
        case .halfOpen, .tripped: break
        }
    }

    private mutating func trip(
        _ openings: Int,
        _ asked: Duration?,
        _ now: UInt64,
        _ random: UInt64
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
