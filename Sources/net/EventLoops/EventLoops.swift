import CLinux
import Glibc
import Synchronization

// Sockets on event loops.
//
// An event loop is a serial dispatch queue, one epoll set and one read source on the epoll
// descriptor. The source's handler takes ready events, serves them, and polls again until its
// iteration is over. When no event is left, it waits itself for some milliseconds, and only then
// lets Dispatch wait. So an idle event loop holds no thread, and a busy one wakes none. One source
// per event loop instead of one per socket halves the cost of a relayed request (13 µs against 24),
// and a bare epoll loop in C is 12.
//
// Everything registered with an event loop is an `Endpoint`: listeners and connections. A
// connection lives on one event loop from accept to close and is used only on its queue. So there
// is no lock here except in the `Mailbox`, in which other threads put work. The event loop gets an
// event for it.
//
// Sockets are registered once, edge-triggered, for both directions. Each remembers whether it is
// readable and writable until a call says otherwise, so steady traffic makes no epoll_ctl call at
// all.
//
// All connections of an event loop read into its one input buffer. While the owner of a connection
// consumes it, the owner may write to other connections, but must not read from one. A connection
// with more to read waits for another turn.
//
// Ready endpoints wait in a `FairQueue`, grouped by client, and an event loop polls again while
// some still wait. So a client that keeps the event loop busy waits for its own work, and others
// wait for a fraction of a millisecond.
//
// The folder TLS has sessions of TLS, without sockets. A connection may hold one, and feeds it.
//
// Deadlines are kept in a wheel of coarse ticks. Moving a deadline later costs one store. An exact
// moment takes an `Alarm`, which costs a system call.

/// Bytes in two directions: one side of a tunnel. A ``Connection`` is one, and a stream of a
/// protocol that carries many on one connection can be one.
package protocol ByteStream: AnyObject {
    /// Bytes that wait in memory to be sent.
    var unsentBytes: Int { get }
    /// Reads once.
    func read() -> Connection.ReadOutcome
    /// Sends bytes. Those that are not taken at once are kept.
    func write(_ bytes: Span<UInt8>) -> Connection.WriteOutcome
    /// Asks for ``ByteStreamOwner/readable(_:)`` when there may be something to read.
    func resumeReading()
    /// Ends the output; reading continues.
    func shutDownOutput()
    /// Calls ``ByteStreamOwner/deadlinePassed(_:)`` when this time is over; `nil` for never.
    func setDeadline(milliseconds: UInt64?)
    /// Closes the stream. The owner gets ``ByteStreamOwner/closed(_:)``.
    func close()
}

/// The user of a ``ByteStream``.
package protocol ByteStreamOwner: AnyObject {
    /// There may be something to read.
    func readable(_ stream: any ByteStream)
    /// All bytes that waited were sent.
    func drained(_ stream: any ByteStream)
    /// The peer has closed both directions, and the owner has not read that yet.
    func broke(_ stream: any ByteStream)
    /// Both directions have ended in order, and ``closed(_:)`` follows. What came last is read now.
    func endedInOrder(_ stream: any ByteStream)
    /// The deadline has passed, or the waiting bytes can't be sent.
    func failed(_ stream: any ByteStream)
    func closed(_ stream: any ByteStream)
}

extension Connection: ByteStream {}

/// Time that never goes back, for durations.
package enum MonotonicClock {
    /// Nanoseconds since some moment before the start.
    package static var nanoseconds: UInt64 { clinux_monotonic_nanoseconds() }

    /// Milliseconds of the clock of ``EventLoop/now``, for code that runs on no event loop.
    package static var milliseconds: UInt64 { nanoseconds / 1_000_000 }

    /// Whole seconds since that moment.
    package static var seconds: Int64 { Int64(clamping: nanoseconds / 1_000_000_000) }
}

/// The machine's wall clock, for times that are compared with those of other programs.
/// ``EventLoop/wallMilliseconds`` costs less, and may be some milliseconds late.
package enum WallClock {
    /// Nanoseconds since 1970; 0 before.
    package static var nanoseconds: UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return UInt64(clamping: now.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: now.tv_nsec)
    }
}

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
