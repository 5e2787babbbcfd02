import Dispatch
package import Foundation
import PortcullisClient
import Synchronization

/// The time of day, which a test moves forward. A frozen one stands still otherwise.
package final class ShiftedClock: ClientClock {
    private struct Waiter {
        let time: Date
        let task: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var shift = 0.0
        var next = 0
        var waiters: [Int: Waiter] = [:]
        var cancelled: Set<Int> = []
        /// The times to which it goes on once something waits for them.
        var passing: [Date] = []
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "portcullis.tests.clock")
    private let frozen: Date?

    package init(isFrozen: Bool = false) { frozen = isFrozen ? Date() : nil }

    package var now: Date { state.withLock { time($0) } }

    private func time(_ state: State) -> Date {
        (frozen ?? Date()).addingTimeInterval(state.shift)
    }

    /// Moves it forward to a time that is to come, and a moment more.
    ///
    /// - Returns: how far that was.
    @discardableResult
    package func advance(to time: Date) -> Double {
        let left = time.timeIntervalSince(now)
        if left >= 0 { advance(by: left + 0.001) }
        return max(left, 0)
    }

    /// Moves it forward to a time as soon as something waits for exactly that time: what waits
    /// longer, as for a limit, goes on waiting.
    package func pass(to time: Date) {
        let numbers = state.withLock { state in
            state.passing.append(time)
            return Array(state.waiters.keys)
        }
        for number in numbers { look(at: number) }
    }

    /// Moves it forward.
    package func advance(by seconds: Double) {
        let numbers = state.withLock { state in
            state.shift += seconds
            return Array(state.waiters.keys)
        }
        for number in numbers { look(at: number) }
    }

    package func wait(until time: Date) async throws {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { task in
                let isCancelled = state.withLock { state in
                    guard state.cancelled.remove(number) == nil else { return true }
                    state.waiters[number] = Waiter(time: time, task: task)
                    return false
                }
                if isCancelled { return task.resume(throwing: CancellationError()) }
                look(at: number)
            }
        } onCancel: {
            let waiter = state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: number)
                if waiter == nil { state.cancelled.insert(number) }
                return waiter
            }
            waiter?.task.resume(throwing: CancellationError())
        }
    }

    /// Resumes a waiter whose time has come, and looks again when it will have.
    private func look(at number: Int) {
        let awaited: Date? = state.withLock { state in
            guard let time = state.waiters[number]?.time else { return nil }
            return state.passing.contains { abs($0.timeIntervalSince(time)) < 0.001 } ? time : nil
        }
        if let awaited, awaited > now { return _ = advance(to: awaited) }
        let due: Waiter? = state.withLock { state in
            guard let waiter = state.waiters[number] else { return nil }
            let left = waiter.time.timeIntervalSince(time(state))
            guard left > 0 else { return state.waiters.removeValue(forKey: number) }
            guard frozen == nil else { return nil }
            queue.asyncAfter(deadline: .now() + min(left, 3_600)) { [self] in look(at: number) }
            return nil
        }
        due?.task.resume()
    }
}
