import Dispatch
import Glibc
import Synchronization

/// The end of the gateway, which comes when the story is over or when a signal is sent.
final class Ending: Sendable {
    private struct State {
        var isAwaited = false
        var status: Int32?
    }

    private let state = Mutex(State())
    // The style has no semaphores. Here the story waits for the gateway, whose event loops go on.
    private let ended = DispatchSemaphore(value: 0)
    private let folder: DemoFolder

    init(_ folder: DemoFolder) { self.folder = folder }

    /// Records that the gateway has ended; called on its control queue.
    func gatewayEnded(_ status: Int32) {
        let isAwaited = state.withLock { state in
            state.status = status
            return state.isAwaited
        }
        guard isAwaited else {
            // A signal came in the middle of the story.
            _ = folder.remove()
            exit(130)
        }
        ended.signal()
    }

    /// Ends the gateway, unless it has ended already, and waits.
    ///
    /// - Returns: the exit status that it would have had.
    func await(_ stop: () -> Void) -> Int32? {
        let status = state.withLock { state in
            state.isAwaited = true
            return state.status
        }
        if let status { return status }
        stop()
        guard ended.wait(timeout: .now() + .seconds(60)) == .success else { return nil }
        return state.withLock { $0.status }
    }

    /// Waits until a signal ends the gateway.
    func awaitSignal() {
        state.withLock { $0.isAwaited = true }
        ended.wait()
    }
}
