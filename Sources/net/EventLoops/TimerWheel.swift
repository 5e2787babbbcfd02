import CLinux

/// Deadlines in coarse ticks, for many things that mostly never expire.
///
/// A slot and a generation identify a thing. It is filed once under the requested tick. When its
/// deadline moves later, the thing stays where it is. When its old tick comes and the owner says
/// that it is not due, it is filed again. So moving a deadline later, which happens at every
/// request, costs nothing here.
package struct TimerWheel: Sendable {
    /// One filed thing.
    package struct Entry: Equatable, Sendable {
        package var token: UInt64
        /// The tick under which it is filed.
        package var tick: UInt64
    }

    /// Ticks in one turn of the wheel. A later deadline is filed under the last tick of this turn
    /// and moved from there.
    package static let span: UInt64 = 1024

    private var buckets: [[Entry]]
    private var next: UInt64
    /// The number of filed entries.
    package private(set) var count = 0

    /// An empty wheel.
    ///
    /// - Parameter now: the current tick; the first call of ``advance(to:)`` serves later ones.
    package init(now: UInt64) {
        buckets = Array(repeating: [], count: Int(Self.span))
        next = now &+ 1
    }

    /// Files a thing and returns its tick: `tick`, or an earlier one.
    package mutating func file(_ token: UInt64, at tick: UInt64) -> UInt64 {
        let tick = min(max(tick, next), next &+ (Self.span - 1))
        buckets[Int(tick % Self.span)].append(Entry(token: token, tick: tick))
        count += 1
        return tick
    }

    /// Removes all entries with ticks up to `now`.
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
/// Deadlines of connections are rounded to ticks of a wheel, and moving them costs nothing. An
/// alarm is a timer of the kernel, and setting it is a system call.
package final class Alarm: Endpoint {
    /// Called at the moment.
    package var rang: (() -> Void)?

    /// An alarm that is not set. Create it after the start of the event loop.
    ///
    /// - Throws: `SocketError` for lack of descriptors.
    package init(on loop: EventLoop) throws(SocketError) {
        let descriptor = clinux_alarm_create()
        guard descriptor >= 0 else { throw SocketError("timerfd_create") }
        super.init(descriptor: descriptor, on: loop)
        try loop.register(self, events: EventLoop.bothEdges)
    }

    /// Fires at this moment of ``MonotonicClock``, or at once when it has passed. Replaces the
    /// moment that was set before.
    package func set(nanoseconds: UInt64) {
        // Moment 0 would disarm it. Each expiry brings an edge, so the count of expiries need not
        // be read.
        _ = clinux_alarm_set(descriptor, max(nanoseconds, 1))
    }

    override func ready(_ events: UInt32) { rang?() }
}
