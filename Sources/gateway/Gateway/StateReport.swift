/// Decides when a state that comes and goes is reported: that it has begun and is over, at once.
/// Further changes wait until ten seconds have passed since the last report, which then says how it
/// stands and how many changes were left out.
struct StateReport<State: Equatable & Sendable>: Sendable {
    enum Step: Equatable {
        case none
        /// - leftOut: changes since the last report that had none.
        case report(State, leftOut: Int)
        /// Call ``waited(now:)`` after so long.
        case wait(nanoseconds: UInt64)
    }

    /// How long a state is not reported again: ten seconds.
    static var quietNanoseconds: UInt64 { 10_000_000_000 }

    private let normal: State
    private var current: State
    private var reported: State
    private var reportedAt: UInt64?
    private var leftOut = 0
    private var isWaiting = false

    /// - normal: as it stands at first, which is not reported.
    init(_ normal: State) {
        self.normal = normal
        current = normal
        reported = normal
    }

    /// The state is another one, at monotonic nanoseconds.
    mutating func changed(to state: State, now: UInt64) -> Step {
        guard state != current else { return .none }
        current = state
        let passed = reportedAt.map { now &- $0 } ?? .max
        let isOver = state == normal && reported != normal && !isWaiting
        if isOver || passed >= Self.quietNanoseconds { return report(now) }
        leftOut += 1
        guard !isWaiting else { return .none }
        isWaiting = true
        return .wait(nanoseconds: Self.quietNanoseconds - passed)
    }

    /// The time is over.
    mutating func waited(now: UInt64) -> Step {
        isWaiting = false
        return leftOut > 0 ? report(now) : .none
    }

    private mutating func report(_ now: UInt64) -> Step {
        reportedAt = now
        reported = current
        defer { leftOut = 0 }
        // The report itself stands for the last of them.
        return .report(current, leftOut: max(leftOut - 1, 0))
    }
}
