import Foundation

/// Work that is done once for everybody who asks for it. Each asks for as long as it likes; the
/// work goes on when no caller does.
final class SharedWork<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiting: [Int: CheckedContinuation<Value?, Never>] = [:]
        /// Places whose time was over before a caller waited there.
        var givenUp: Set<Int> = []
        var nextPlace = 0
    }

    private let state = Guarded(State())

    /// Whether the work has ended.
    var hasEnded: Bool { state.withLock { $0.value != nil } }

    /// Ends the work, for all who wait and all who ask later.
    func end(with value: Value) {
        let waiting = state.withLock { state in
            guard state.value == nil else { return [Int: CheckedContinuation<Value?, Never>]() }
            state.value = value
            defer { state.waiting = [:] }
            return state.waiting
        }
        for continuation in waiting.values { continuation.resume(returning: value) }
    }

    /// What the work came to; `nil` when it has not ended at a time, or the task was cancelled.
    func value(until time: Date, by clock: any ClientClock) async -> Value? {
        let place = state.withLock { state in
            state.nextPlace += 1
            return state.nextPlace
        }
        let alarm = Task {
            guard (try? await clock.wait(until: time)) != nil else { return }
            giveUp(place)
        }
        defer {
            alarm.cancel()
            state.withLock { _ = $0.givenUp.remove(place) }
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ended: Value?? = state.withLock { state in
                    if let value = state.value { return .some(value) }
                    if state.givenUp.contains(place) { return .some(nil) }
                    state.waiting[place] = continuation
                    return nil
                }
                if let ended { continuation.resume(returning: ended) }
            }
        } onCancel: {
            giveUp(place)
        }
    }

    private func giveUp(_ place: Int) {
        let continuation = state.withLock { state in
            state.givenUp.insert(place)
            return state.waiting.removeValue(forKey: place)
        }
        continuation?.resume(returning: nil)
    }
}

/// A value guarded by a lock, for what callbacks of the system touch. Nothing waits under the lock.
///
/// `Mutex` would do, but the systems that the client runs on have it only since 2024.
///
/// `@unchecked Sendable`: `value` is reached in `withLock` only, under the lock.
final class Guarded<Value: Sendable>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) { self.value = value }

    func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}
