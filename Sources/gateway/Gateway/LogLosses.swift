import Lanes
import Synchronization

/// Lines of one log that were dropped: how many, and who is told.
///
/// A reload that changes the access log's place keeps the count.
final class LogLosses: Sendable {
    private struct State {
        var report = LossReport()
        var tell: @Sendable (LossReport.Notice) -> Void = { _ in }
    }

    private let lines = Atomic<UInt64>(0)
    private let state = Mutex(State())

    /// Lines that were dropped since the start.
    var count: UInt64 { lines.load(ordering: .relaxed) }

    /// Calls `tell`, on any thread, when losses begin and when they are over.
    func watch(_ tell: @escaping @Sendable (LossReport.Notice) -> Void) {
        state.withLock { $0.tell = tell }
    }

    /// Lines were dropped.
    func lost(_ lines: UInt64) {
        self.lines.add(lines, ordering: .relaxed)
        tell { $0.lost(lines, now: MonotonicClock.nanoseconds) }
    }

    /// Lines were written.
    func wrote() { tell { $0.wrote(now: MonotonicClock.nanoseconds) } }

    private func tell(_ change: (inout LossReport) -> LossReport.Notice) {
        let (notice, tell) = state.withLock { (change(&$0.report), $0.tell) }
        if notice != .none { tell(notice) }
    }
}
