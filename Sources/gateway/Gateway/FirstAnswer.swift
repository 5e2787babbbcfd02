import Synchronization

/// Delivers only the first answer.
final class FirstAnswer<Answer>: Sendable {
    private let completion: Mutex<(@Sendable (Answer) -> Void)?>

    init(_ completion: @escaping @Sendable (Answer) -> Void) {
        self.completion = Mutex(completion)
    }

    func give(_ answer: Answer) {
        let completion = completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        completion?(answer)
    }
}

/// Runs a closure only at the first call.
final class Once: Sendable {
    private let body: Mutex<(@Sendable () -> Void)?>

    init(_ body: @escaping @Sendable () -> Void) { self.body = Mutex(body) }

    func run() {
        let body = body.withLock { body in
            defer { body = nil }
            return body
        }
        body?()
    }
}
