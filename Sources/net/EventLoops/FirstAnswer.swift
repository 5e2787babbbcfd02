package import Dispatch
import Encodings
import Synchronization

/// Delivers only the first answer.
package final class FirstAnswer<Answer>: Sendable {
    private let completion: Mutex<(@Sendable (Answer) -> Void)?>

    package init(_ completion: @escaping @Sendable (Answer) -> Void) {
        self.completion = Mutex(completion)
    }

    package func give(_ answer: Answer) {
        let completion = completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        completion?(answer)
    }
}

extension DispatchTimeInterval {
    package init(_ duration: Duration) {
        self = .milliseconds(Int(clamping: duration.milliseconds))
    }
}

extension Duration {
    /// Whole milliseconds, at least 1.
    package var milliseconds: UInt64 { max(nanosecondCount / 1_000_000, 1) }
}
