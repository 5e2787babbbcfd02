import CLinux
import Glibc
import Synchronization

/// Work that other threads have for an event loop.
///
/// Its descriptor is watched by the event loop, so that work wakes also an event loop that waits
/// for events. `Sendable`: what is shared is under the lock.
final class Mailbox: Sendable {
    typealias Work = @Sendable () -> Void

    /// Has an edge for each time that the event loop is to look.
    let descriptor: Int32
    private let work = Mutex<[Work]>([])

    /// - Throws: `SocketError` when the system has no more descriptors.
    init() throws(SocketError) {
        descriptor = clinux_event_create()
        guard descriptor >= 0 else { throw SocketError("eventfd") }
    }

    deinit { _ = Glibc.close(descriptor) }

    /// Leaves work, from any thread.
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
