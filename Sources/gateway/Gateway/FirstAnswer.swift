import Synchronization

/// Delivers only the first answer.
final class FirstAnswer<Answer>: Sendable {
    private let completion: Mutex<(@Sendable (Answer) -> Void)?>

    init(_ completion: @escaping @Sendable (Answer) -> Void) { self.completion = Mutex(completion) }

    func give(_ answer: Answer) {
        let completion = completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        completion?(answer)
    }
}
