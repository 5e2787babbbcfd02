internal import Synchronization

/// The process that an upgrade has started, and that decides now.
///
/// Questions and answers are bytes: those of a ``DeciderQuestion`` and of its ``DeciderAnswer``.
package protocol Successor: AnyObject, Sendable {
    /// Asks, and waits; `nil` when no answer comes in time or the process is gone.
    func ask(_ question: [UInt8]) -> [UInt8]?
    /// Asks without waiting. `answered` is called once, maybe before this returns. Uses of counters
    /// are answered in the order of the questions.
    func ask(_ question: [UInt8], _ answered: @escaping @Sendable ([UInt8]?) -> Void)
}

/// Holds the successor, once there is one. Each request asks it first; before the hand-over that
/// costs one atomic load.
struct SuccessorPlace: ~Copyable, Sendable {
    private let successor = Mutex<(any Successor)?>(nil)
    private let isTaken = Atomic(false)

    /// The successor; `nil` before the hand-over.
    var holder: (any Successor)? {
        guard isTaken.load(ordering: .acquiring) else { return nil }
        return successor.withLock { $0 }
    }

    func give(to successor: any Successor) {
        self.successor.withLock { $0 = successor }
        isTaken.store(true, ordering: .releasing)
    }
}
