import CLinux

/// Deadlines in coarse ticks, for many things that mostly never expire.
///
/// A thing is known by its slot and generation. It is filed once under the tick that was asked for;
/// when a deadline moves later the thing stays where it is, and is filed anew when its old tick
/// comes and the owner says that it is not due. So moving a deadline later, which happens at every
/// request, costs nothing here.
package struct TimerWheel: Sendable {
    /// One filed thing.
    package struct Entry: Equatable, Sendable {
        package var token: UInt64
        /// The tick it is filed under.
        package var tick: UInt64
    }

    /// Ticks in one turn of the wheel. A later deadline is filed under the last tick of this turn
    /// and moves on from there.
    package static let span: UInt64 = 1024

    private var buckets: [[Entry]]
    private var next: UInt64
    /// How many entries are filed.
    package private(set) var count = 0

    /// An empty wheel.
    ///
    /// - Parameter now: the current tick; the first call of ``advance(to:)`` serves later ones.
    package init(now: UInt64) {
        buckets = Array(repeating: [], count: Int(Self.span))
        next = now &+ 1
    }

    /// Files a thing and returns the tick it is filed under: `tick`, or an earlier one.
    package mutating func file(_ token: UInt64, at tick: UInt64) -> UInt64 {
        let tick = min(max(tick, next), next &+ (Self.span - 1))
        buckets[Int(tick % Self.span)].append(Entry(token: token, tick: tick))
        count += 1
        return tick
    }

    /// Takes out everything filed under ticks up to `now`.
    package mutating func advance(to now: UInt64, into due: inout [Entry]) {
        if now >= next, now - next >= Self.span { next = now - (Self.span - 1) }
        while next <= now {
            let bucket = Int(next % Self.span)
            if !buckets[bucket].isEmpty {
                count -= buckets[bucket].count
                due.append(contentsOf: buckets[bucket])
                buckets[bucket].removeAll(keepingCapacity: buckets[bucket].count <= 64)
            }
            next += 1
        }
    }
}

/// Wakes an event loop at a moment, to the microsecond.
///
/// Deadlines of connections are rounded to ticks of a wheel and cost nothing to move; an alarm is a
/// timer of the kernel, and setting it is a system call.
package final class Alarm: Endpoint {
    /// Called at the moment.
    package var rang: (() -> Void)?

    /// An alarm that is not set. Not before the event loop was started.
    ///
    /// - Throws: `SocketError` for want of descriptors.
    package init(on loop: EventLoop) throws(SocketError) {
        let descriptor = clinux_alarm_create()
        guard descriptor >= 0 else { throw SocketError("timerfd_create") }
        super.init(descriptor: descriptor, on: loop)
        try loop.register(self, events: EventLoop.bothEdges)
    }

    /// Rings at this moment of ``MonotonicClock``, at once when it has passed; replaces the moment
    /// that was set before.
    package func set(nanoseconds: UInt64) {
        // Moment 0 would disarm it. Each expiry brings an edge, so the count of expiries need not
        // be read.
        _ = clinux_alarm_set(descriptor, max(nanoseconds, 1))
    }

    override func ready(_ events: UInt32) { rang?() }
}
