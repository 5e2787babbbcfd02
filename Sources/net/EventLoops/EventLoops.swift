import CLinux

// Sockets on event loops.
//
// An event loop is a serial dispatch queue, one epoll set and one read source on the epoll
// descriptor. The source's handler takes what is ready, performs it, and takes again until its turn
// is over. Once nothing is left it waits for events itself for some milliseconds, and only then
// leaves that to Dispatch: an event loop with nothing to do holds no thread, and a busy one wakes
// none. One source per event loop instead of one per socket halves the cost of a relayed request
// (13 µs against 24), and a bare epoll loop in C is 12.
//
// Everything registered with an event loop is an `Endpoint`: listeners and connections. A
// connection lives on one event loop from accept to close and is touched on that event loop's queue
// alone, so nothing here locks, except the `Mailbox`, in which other threads leave work. The event
// loop sees that as an event.
//
// Sockets are registered once, edge-triggered, for both directions. Whether one is readable or
// writable is remembered until a call says otherwise, so steady traffic makes no epoll_ctl call at
// all.
//
// All connections of an event loop read into the event loop's one input buffer. Who consumes it may
// write to other connections, but never read one. A connection with more to read waits for another
// turn.
//
// What is ready waits in a `FairQueue`, by the client it is for, and an event loop asks for events
// again while some still wait. So a client that keeps the event loop busy waits for itself, and
// others for a fraction of a millisecond.
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
    /// Hands bytes over. What is not taken at once is kept.
    func write(_ bytes: Span<UInt8>) -> Connection.WriteOutcome
    /// Asks for ``ByteStreamOwner/readable(_:)`` when there may be something to read.
    func resumeReading()
    /// Says that nothing more will be sent; reading goes on.
    func shutDownOutput()
    /// Calls ``ByteStreamOwner/deadlinePassed(_:)`` when this time is over; `nil` for never.
    func setDeadline(milliseconds: UInt64?)
    /// Closes the stream. The owner is told with ``ByteStreamOwner/closed(_:)``.
    func close()
}

/// What uses a ``ByteStream``.
package protocol ByteStreamOwner: AnyObject {
    /// There may be something to read.
    func readable(_ stream: any ByteStream)
    /// What waited to be sent has been sent.
    func drained(_ stream: any ByteStream)
    /// The peer has closed both directions, and the owner has not read that yet.
    func broke(_ stream: any ByteStream)
    /// The deadline has passed, or what waits can't be sent.
    func failed(_ stream: any ByteStream)
    func closed(_ stream: any ByteStream)
}

extension Connection: ByteStream {}

/// Time that never goes back, for durations.
package enum MonotonicClock {
    /// Nanoseconds since some moment before the start.
    package static var nanoseconds: UInt64 { clinux_monotonic_nanoseconds() }

    /// Milliseconds as ``EventLoop/now`` has them, for what is on no event loop.
    package static var milliseconds: UInt64 { clinux_coarse_milliseconds() }
}
