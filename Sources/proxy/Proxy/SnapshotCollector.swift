import Dispatch
import EventLoops
package import Services
import Synchronization

/// Gives snapshots to all callers, by one gathering at a time, and within a bounded time.
///
/// Operators must see that event loops are busy. So no page waits for them without a limit, and
/// requests that come meanwhile add no work to the event loops.
package final class SnapshotCollector: SnapshotSource {
    /// Calls the closure when a request has waited long enough.
    package typealias Timer = @Sendable (@escaping @Sendable () -> Void) -> Void

    private struct State {
        var gathering = Gathering<UInt64>()
        /// The waiting callers, by their number. Each leaves in time, so there are never more than
        /// operators' requests under way.
        var waiting: [UInt64: @Sendable (AdminSnapshot?) -> Void] = [:]
        var lastNumber: UInt64 = 0
    }

    private let source: any AdminSource
    private let timer: Timer
    private let state = Mutex(State())

    package init(_ source: any AdminSource, timer: @escaping Timer = SnapshotCollector.twoSeconds) {
        self.source = source
        self.timer = timer
    }

    private static let queue = DispatchQueue(label: "portcullis.snapshots")

    /// Less than the 10 s after which Prometheus gives up by default.
    package static let twoSeconds: Timer = { queue.asyncAfter(deadline: .now() + 2, execute: $0) }

    package func ask(_ completion: @escaping @Sendable (AdminSnapshot?) -> Void) {
        let (number, action) = state.withLock { state in
            state.lastNumber += 1
            state.waiting[state.lastNumber] = completion
            return (state.lastNumber, state.gathering.asked(state.lastNumber))
        }
        timer { self.timedOut(number) }
        perform(action)
    }

    private func timedOut(_ number: UInt64) {
        let completion = state.withLock { state in
            state.gathering.withdrawn(number)
            return state.waiting.removeValue(forKey: number)
        }
        completion?(nil)
    }

    private func perform(_ action: Gathering<UInt64>.Action) {
        switch action {
        case .none: break
        case .begin(let number): source.gather { self.gathered($0, number) }
        }
    }

    private func gathered(_ snapshot: AdminSnapshot, _ number: UInt64) {
        let (completions, action) = state.withLock { state in
            let (served, action) = state.gathering.ended(number)
            return (served.compactMap { state.waiting.removeValue(forKey: $0) }, action)
        }
        for completion in completions { completion(snapshot) }
        perform(action)
    }
}

/// Tells probes on the public listeners whether the gateway is ready. It costs at most one
/// gathering per second, however many clients ask.
///
/// So an answer may be a second old. A late answer is given and not kept.
package final class ProbeResponder: ReadinessSource {
    /// How long an answer is reused, in nanoseconds: 1 s.
    package static let age: UInt64 = 1_000_000_000

    private struct State {
        var source: (any SnapshotSource)?
        /// The last result, and until when it is reused; `nil` before the first answer.
        var last: (readiness: Readiness, until: UInt64)?
    }

    private let clock: @Sendable () -> UInt64
    private let state = Mutex(State())

    /// - clock: nanoseconds of a clock that never goes back.
    package init(clock: @escaping @Sendable () -> UInt64 = { MonotonicClock.nanoseconds }) {
        self.clock = clock
    }

    /// Sets the source. Before that, the gateway is not ready.
    package func ask(_ source: any SnapshotSource) { state.withLock { $0.source = source } }

    package func askReadiness(_ completion: @escaping @Sendable (Readiness) -> Void) {
        let now = clock()
        let (last, source) = state.withLock { ($0.last, $0.source) }
        if let last, now < last.until { return completion(last.readiness) }
        guard let source else { return completion(.unready(.gatherTimeout)) }
        source.ask { [self] snapshot in
            guard let snapshot else { return completion(.unready(.gatherTimeout)) }
            let readiness = snapshot.readiness
            let (until, isLate) = clock().addingReportingOverflow(Self.age)
            state.withLock { $0.last = (readiness, isLate ? .max : until) }
            completion(readiness)
        }
    }
}
