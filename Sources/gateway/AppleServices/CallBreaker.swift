/// Whether a host is called at all: after several failures in a row it is left alone for a while,
/// then tried with one call.
///
/// Times are monotonic nanoseconds.
package struct CallBreaker: Sendable {
    /// Failures in a row after which the host is left alone.
    package static let failuresMax = 5
    /// How long, by how often in a row it was.
    package static let pauses = BackOff(first: .seconds(2), most: .seconds(120))
    /// The longest pause that the host itself can ask for.
    package static let retryAfterMax = Duration.seconds(3_600)

    private enum State {
        /// Calls are made; this number of the last ones failed. Leaves to `tripped`.
        case closed(failures: Int)
        /// No call is made before then. Leaves to `halfOpen`.
        case tripped(until: UInt64, openings: Int)
        /// One call is under way, and decides. Leaves to `closed`, `tripped`.
        case halfOpen(openings: Int)
    }

    /// Whether a call may be made.
    package enum Admission: Equatable, Sendable {
        case call
        /// This one call tries whether the host works again.
        case probe
        case refused
    }

    /// What is reported of it. The raw value is a label of metrics.
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

    /// Whether the last call failed, so that the next one should use nothing of its connection.
    package var isDoubtful: Bool {
        if case .closed(failures: 0) = state { false } else { true }
    }

    /// A call wants to be made.
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

    /// The call that was to try the host has not been made after all.
    package mutating func probeDropped(now: UInt64) {
        switch state {
        case .halfOpen(let openings): state = .tripped(until: now, openings: openings)
        case .closed, .tripped: break
        }
    }

    /// The host did its work.
    package mutating func succeeded(_ admission: Admission) {
        switch state {
        case .closed: state = .closed(failures: 0)
        case .halfOpen where admission == .probe: state = .closed(failures: 0)
        // A call from before the host was left alone: late news, which decides nothing.
        case .halfOpen, .tripped: break
        }
    }

    /// The host failed.
    package mutating func failed(_ admission: Admission, now: UInt64, random: UInt64) {
        switch state {
        case .closed(let failures) where failures + 1 < Self.failuresMax:
            state = .closed(failures: failures + 1)
        case .closed: trip(1, nil, now, random)
        case .halfOpen(let openings) where admission == .probe:
            trip(openings + 1, nil, now, random)
        case .halfOpen, .tripped: break
        }
    }

    /// The host said that it is called too often. `pause` is what it asks for, if it says.
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

/// How long to leave something alone that has failed: twice as long with each failure, at random
/// within the upper half, so that many that failed together do not come back together.
package struct BackOff: Hashable, Sendable {
    /// The longest pause after the first failure.
    package let first: Duration
    /// The longest pause of all.
    package let most: Duration

    package init(first: Duration, most: Duration) {
        self.first = first
        self.most = most
    }

    /// The pause after this number of failures in a row. `random` is any number, fresh for each
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

extension Duration {
    /// Whole nanoseconds; 0 for what is negative, at most a hundred years.
    var nanosecondCount: UInt64 {
        let seconds = UInt64(min(max(components.seconds, 0), 3_155_760_000))
        return seconds * 1_000_000_000 + UInt64(max(components.attoseconds, 0) / 1_000_000_000)
    }
}
