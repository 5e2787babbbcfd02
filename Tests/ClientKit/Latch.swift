import Synchronization

/// Holds tasks until it is opened.
package final class Latch: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var arrivals: [(count: Int, task: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Lets all go that wait, and all who come.
    package func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for task in waiting { task.resume() }
    }

    /// Returns when it is open.
    package func pass() async {
        await withCheckedContinuation { (task: CheckedContinuation<Void, Never>) in
            let resumed = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                guard !state.isOpen else { return [task] }
                state.waiting.append(task)
                let due = state.arrivals.filter { $0.count <= state.waiting.count }
                state.arrivals.removeAll { $0.count <= state.waiting.count }
                return due.map(\.task)
            }
            for task in resumed { task.resume() }
        }
    }

    /// Returns when so many tasks wait.
    package func awaitArrivals(_ count: Int) async {
        await withCheckedContinuation { (task: CheckedContinuation<Void, Never>) in
            let isDue = state.withLock { state in
                guard state.waiting.count < count else { return true }
                state.arrivals.append((count, task))
                return false
            }
            if isDue { task.resume() }
        }
    }
}
