import Foundation
import LoopbackKit

extension Thread {
    /// What a closure answers that runs on a thread of its own.
    ///
    /// `@unchecked Sendable`: the result is touched under `condition`.
    final class Answer<Value>: @unchecked Sendable {
        private let condition = NSCondition()
        private var result: Result<Value, any Error>?

        init(_ body: @escaping () throws -> Value) {
            // Whoever asks does not touch what the closure uses until it has ended.
            nonisolated(unsafe) let body = body
            Thread.detachNewThread { [self] in
                let result = Result { try body() }
                condition.withLock {
                    self.result = result
                    condition.broadcast()
                }
            }
        }

        var isThere: Bool { condition.withLock { result != nil } }

        func value(within seconds: Double = ChildProcess.patience) throws -> Value {
            let deadline = Date(timeIntervalSinceNow: seconds)
            return try condition.withLock {
                while result == nil, condition.wait(until: deadline) {}
                guard let result else { throw ChildProcess.Failure(description: "no answer") }
                return try result.get()
            }
        }
    }
}
