import Foundation
import LoopbackSockets
import Synchronization

/// Hands steps to a driver and results back: the run waits for results, the driver for steps.
final class DriverChannel: Sendable {
    private struct State {
        /// The step that the driver gets next.
        var step: Data?
        var result: Data?
        var isClosed = false
    }

    /// Seconds that a driver has for a step.
    private static let stepPatience = 300.0
    /// Seconds that a driver waits for its next step: a case may wait, and a gateway starts.
    private static let nextPatience = 600.0

    private let state = Mutex(State())
    private let changed = NSCondition()

    var isClosed: Bool { state.withLock { $0.isClosed } }

    // MARK: The run's side

    /// Hands out a step and waits for its result.
    func ask(_ step: Data) throws(ToolError) -> Data {
        change { ($0.step, $0.result) = (step, nil) }
        guard wait(Self.stepPatience, until: { $0.result != nil || $0.isClosed }),
            let result = state.withLock({ $0.result })
        else { throw ToolError("the driver does not say how the step went") }
        return result
    }

    /// Hands out the last step, which has no result.
    func tell(_ step: Data) { change { ($0.step, $0.result) = (step, nil) } }

    /// Another driver has come, or the server ends.
    func close() { change { $0.isClosed = true } }

    // MARK: The driver's side

    func deliver(_ result: Data) { change { $0.result = result } }

    /// The next step; `nil` where there is none in time.
    func next() -> Data? {
        _ = wait(Self.nextPatience) { $0.step != nil || $0.isClosed }
        return state.withLock { state in
            defer { state.step = nil }
            return state.step
        }
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { body(&$0) }
        changed.withLock { changed.broadcast() }
    }

    private func wait(_ seconds: Double, until isTrue: (State) -> Bool) -> Bool {
        let deadline = Date(timeIntervalSinceNow: seconds)
        return changed.withLock {
            while !state.withLock({ isTrue($0) }) {
                guard changed.wait(until: deadline) else { return state.withLock { isTrue($0) } }
            }
            return true
        }
    }
}
