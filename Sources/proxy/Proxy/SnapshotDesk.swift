import Dispatch
package import Services
import Synchronization

/// Gives snapshots to all who ask, by one gathering at a time, and within a bounded time.
///
/// Operators must see that lanes are busy. So no page waits for them without end, and requests that
/// come meanwhile give the lanes no more to do.
package final class SnapshotDesk: SnapshotSource {
    /// Calls the closure when a request has waited long enough.
    package typealias Timer = @Sendable (@escaping @Sendable () -> Void) -> Void

    private struct State {
        var gathering = Gathering<UInt64>()
        /// Those who wait, by their number. Each one leaves in time, so there are never more than
        /// requests of operators under way.
        var waiting: [UInt64: @Sendable (AdminSnapshot?) -> Void] = [:]
        var lastNumber: UInt64 = 0
    }

    private let source: any AdminSource
    private let timer: Timer
    private let state = Mutex(State())

    package init(_ source: any AdminSource, timer: @escaping Timer = SnapshotDesk.twoSeconds) {
        self.source = source
        self.timer = timer
    }

    private static let queue = DispatchQueue(label: "portcullis.snapshots")

    /// Below the 10 s after which Prometheus gives up by default.
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
