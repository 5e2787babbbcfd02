package import ByteCoding
internal import Synchronization

/// Where something keeps who decides in its place, once it has handed over. It is asked for each
/// request, and costs one atomic load before.
package struct SuccessorPlace: ~Copyable, Sendable {
    private let successor = Mutex<(any Successor)?>(nil)
    private let isTaken = Atomic(false)

    package init() {}

    /// Who decides; `nil` before the hand-over.
    package var holder: (any Successor)? {
        guard isTaken.load(ordering: .acquiring) else { return nil }
        return successor.withLock { $0 }
    }

    package func give(to successor: any Successor) {
        self.successor.withLock { $0 = successor }
        isTaken.store(true, ordering: .releasing)
    }
}
