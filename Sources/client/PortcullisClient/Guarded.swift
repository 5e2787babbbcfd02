import Foundation

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
