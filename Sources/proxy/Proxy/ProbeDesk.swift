import Lanes
package import Services
import Synchronization

/// Tells probes on the public listeners whether the gateway is ready, at the price of one gathering
/// a second at most, however many strangers ask.
///
/// So an answer may be a second old. One that is too late is told and not kept.
package final class ProbeDesk: ReadinessSource {
    /// How long an answer is told again, in nanoseconds: 1 s.
    package static let age: UInt64 = 1_000_000_000

    private struct State {
        var source: (any SnapshotSource)?
        /// What was found last, and until when it is told; `nil` before the first answer.
        var last: (readiness: Readiness, until: UInt64)?
    }

    private let clock: @Sendable () -> UInt64
    private let state = Mutex(State())

    /// - clock: nanoseconds of a clock that never goes back.
    package init(clock: @escaping @Sendable () -> UInt64 = { MonotonicClock.nanoseconds }) {
        self.clock = clock
    }

    /// Whom to ask. Before that, the gateway is not ready.
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
