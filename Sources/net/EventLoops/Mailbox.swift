import CLinux
import Glibc
import Synchronization

/// Work from other threads for an event loop.
///
/// The event loop watches its descriptor, so work also wakes a loop that waits for events.
/// `Sendable`: the shared state is under the lock.
final class Mailbox: Sendable {
    typealias Work = @Sendable () -> Void

    /// Has an edge each time that the event loop must check.
    let descriptor: Int32
    private let work = Mutex<[Work]>([])

    /// - Throws: `SocketError` when the system has no more descriptors.
    init() throws(SocketError) {
        descriptor = clinux_event_create()
        guard descriptor >= 0 else { throw SocketError("eventfd") }
    }

    deinit { _ = Glibc.close(descriptor) }

    /// Adds work, from any thread.
    func post(_ item: @escaping Work) {
        let wasEmpty = work.withLock { work in
            defer { work.append(item) }
            return work.isEmpty
        }
        // Each raise brings an edge, so the count need not be read.
        if wasEmpty { clinux_event_raise(descriptor) }
    }

    /// All work, in its order.
    func take() -> [Work] {
        work.withLock { work in
            defer { work = [] }
            return work
        }
    }
}
