import Synchronization

@testable import Admin

/// Answers at once with what it was given.
struct ReadySource: AdminSource {
    let snapshot: AdminSnapshot

    func gather(_ completion: @escaping @Sendable (AdminSnapshot) -> Void) {
        completion(snapshot)
    }
}

/// Answers the first call never and every later one at once; keeps the completions.
final class HangingSource: AdminSource {
    let calls = Mutex<[@Sendable (AdminSnapshot) -> Void]>([])
    /// Called when the first call hangs.
    let hung = Mutex<@Sendable () -> Void>({})

    func gather(_ completion: @escaping @Sendable (AdminSnapshot) -> Void) {
        let isFirst = calls.withLock { calls in
            calls.append(completion)
            return calls.count == 1
        }
        if isFirst { hung.withLock { $0 }() } else { completion(.sample()) }
    }

    /// Forgets what it keeps, all of which refers to the server that refers to this source.
    func letGo() {
        calls.withLock { $0 = [] }
        hung.withLock { $0 = {} }
    }
}
