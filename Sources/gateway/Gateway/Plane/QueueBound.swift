import Dispatch

/// A value that lives on a dispatch queue.
///
/// `@unchecked Sendable`: `storage` is reached only through `value`, and every access of `value`
/// checks the queue first.
final class QueueBound<Value>: @unchecked Sendable {
    private let queue: DispatchQueue
    private var storage: Value

    init(_ value: sending Value, on queue: DispatchQueue) {
        self.queue = queue
        storage = value
    }

    /// The value; traps unless the caller runs on the queue of the value.
    var value: Value {
        get {
            dispatchPrecondition(condition: .onQueue(queue))
            return storage
        }
        _modify {
            dispatchPrecondition(condition: .onQueue(queue))
            yield &storage
        }
    }
}
