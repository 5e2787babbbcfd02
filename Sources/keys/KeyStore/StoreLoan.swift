/// Descriptors with which the next process of a gateway takes over a store that is in use.
package struct StoreLoan: Sendable {
    /// Of the lock. It is held as long as one of both processes has it.
    package let lock: Int32
    /// Of the socket on which commands call.
    package let calls: Int32

    package init(lock: Int32, calls: Int32) {
        (self.lock, self.calls) = (lock, calls)
    }
}
