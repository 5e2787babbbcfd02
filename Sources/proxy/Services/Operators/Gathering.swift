/// Decides which requests wait for which snapshot.
///
/// One gathering runs at a time. A request that comes meanwhile waits for the next one. So a page
/// shows all that happened before its request, and a source that hangs is asked only once. Holds
/// each waiter at most once.
package struct Gathering<Waiter: Hashable> {
    package enum Action: Equatable {
        case none
        /// Ask the source; its completion is ``ended(_:)`` with this number.
        case begin(number: UInt64)
    }

    /// The gathering that runs; `nil` for none.
    private var running: UInt64?
    private var begun: UInt64 = 0
    private var waiting: Set<Waiter> = []
    private var waitingForNext: Set<Waiter> = []

    package init() {}

    /// A new waiter wants a snapshot.
    package mutating func asked(_ waiter: Waiter) -> Action {
        guard running == nil else {
            waitingForNext.insert(waiter)
            return .none
        }
        waiting.insert(waiter)
        return begin()
    }

    /// The waiter no longer waits, or never did.
    package mutating func withdrawn(_ waiter: Waiter) {
        waiting.remove(waiter)
        waitingForNext.remove(waiter)
    }

    /// A gathering completed. Returns the waiters that it serves, and the next action. A second
    /// completion serves none.
    package mutating func ended(_ number: UInt64) -> (served: Set<Waiter>, action: Action) {
        guard running == number else { return ([], .none) }
        let served = waiting
        waiting = waitingForNext
        waitingForNext = []
        running = nil
        return (served, waiting.isEmpty ? .none : begin())
    }

    private mutating func begin() -> Action {
        begun += 1
        running = begun
        return .begin(number: begun)
    }
}
