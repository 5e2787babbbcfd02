import Foundation
import PortcullisClient
import Synchronization

/// A clock that stands still until a test moves it.
final class ManualClock: ClientClock {
    private struct State {
        var now = Date(timeIntervalSince1970: 1_800_000_000)
        var waiting: [Int: (until: Date, CheckedContinuation<Bool, Never>)] = [:]
        var nextPlace = 0
    }

    private let lock = NSLock()
    /// `nonisolated(unsafe)`: reached under the lock only.
    nonisolated(unsafe) private var state = State()

    /// Tasks that wait for a time that never comes are held by their clock alone. Clocks stay, so
    /// that no sanitizer takes those tasks for leaks.
    private static let all = Mutex<[ManualClock]>([])

    init() { Self.all.withLock { [self] in $0.append(self) } }

    private func withState<Result>(_ body: (inout State) -> Result) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return body(&state)
    }

    var now: Date { withState(\.now) }

    /// Returns once so many wait for this time, or the test was cancelled.
    func isAwaited(_ time: Date, by count: Int = 1) async {
        while !Task.isCancelled,
            withState({ $0.waiting.values.filter { $0.until == time }.count }) < count
        {
            await Task.yield()
        }
    }

    func advance(by seconds: Double) {
        let due = withState { state in
            state.now += seconds
            let due = state.waiting.filter { $0.value.until <= state.now }
            for place in due.keys { state.waiting[place] = nil }
            return due.values.map(\.1)
        }
        for continuation in due { continuation.resume(returning: true) }
    }

    func wait(until time: Date) async throws {
        let place = withState { state in
            state.nextPlace += 1
            return state.nextPlace
        }
        let hasCome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready: Bool? = withState { state in
                    if Task.isCancelled { return false }
                    if time <= state.now { return true }
                    state.waiting[place] = (time, continuation)
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            withState { $0.waiting.removeValue(forKey: place) }?.1.resume(returning: false)
        }
        guard hasCome else { throw CancellationError() }
    }
}
