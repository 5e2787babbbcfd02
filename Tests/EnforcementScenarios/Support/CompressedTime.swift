import Dispatch
import Synchronization

@testable import Parties

/// A clock that stands while anything is done, and goes on to the next timer then.
final class CompressedTime: Sendable {
    private struct Timer {
        let at: Int64
        /// Waits until what is done then can be done.
        let ready: @Sendable () throws -> Void
        let body: @Sendable () -> Void
    }

    private struct State {
        var now: Int64
        var timers: [Timer] = []

        /// The first timer of those that end next.
        mutating func next(before end: Int64) -> Timer? {
            guard let first = timers.indices.min(by: { timers[$0].at < timers[$1].at }),
                timers[first].at < end
            else { return nil }
            return timers.remove(at: first)
        }
    }

    private let state: Mutex<State>

    /// - `now`: milliseconds since 1970.
    init(at now: Int64) { state = Mutex(State(now: now)) }

    var now: Int64 { state.withLock(\.now) }

    /// The clock of a renewer.
    var clock: RenewalClock {
        var clock = RenewalClock { [self] in now }
        clock.run = { [self] _, milliseconds, body in after(milliseconds, body) }
        return clock
    }

    func after(
        _ milliseconds: Int64,
        ready: @escaping @Sendable () throws -> Void = {},
        _ body: @escaping @Sendable () -> Void
    ) {
        state.withLock { state in
            let at = state.now + max(milliseconds, 1)
            state.timers.append(Timer(at: at, ready: ready, body: body))
        }
    }

    /// Lets time pass until a moment. It moves on this queue alone, so it stands for whatever is
    /// done there.
    func run(until end: Int64, on queue: DispatchQueue) throws {
        while true {
            queue.sync {}
            guard let timer = state.withLock({ $0.next(before: end) }) else { break }
            try timer.ready()
            queue.sync {
                state.withLock { $0.now = max($0.now, timer.at) }
                timer.body()
            }
        }
        queue.sync { state.withLock { $0.now = end } }
    }

    /// Lets time pass in which nothing runs: what was waited for is forgotten, once it is there.
    func pass(_ milliseconds: Int64) throws {
        let timers = state.withLock { state in
            defer { state.timers = [] }
            return state.timers
        }
        for timer in timers { try timer.ready() }
        state.withLock { $0.now += milliseconds }
    }
}
