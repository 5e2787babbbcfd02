import CLinux
import Glibc

/// An object with a descriptor that an event loop watches: a listener or a connection.
///
/// Lives on its event loop's queue. Subclasses handle a ready descriptor and a passed deadline.
open class Endpoint {
    /// The event loop of the endpoint.
    package final let loop: EventLoop
    /// The descriptor; -1 once closed.
    package final var descriptor: Int32 { openDescriptor }
    private final var openDescriptor: Int32
    /// Slot and generation on the event loop; `nil` before it is registered and after it is closed.
    final var token: UInt64?

    /// The flow in which the event loop schedules it: 0…``EventLoop/flowCount`` - 1. Endpoints in
    /// one flow share their turns. 0 is for endpoints that belong to no client.
    package final var flow: Int {
        get { waitingFlow }
        set { waitingFlow = newValue }
    }
    private final var waitingFlow = 0

    /// The tick at which ``deadlinePassed()`` is due; `nil` for never.
    final var deadlineTick: UInt64?
    /// The tick under which the wheel has this endpoint.
    final var filedTick: UInt64?

    package init(descriptor: Int32, on loop: EventLoop) {
        openDescriptor = descriptor
        self.loop = loop
    }

    /// Whether another descriptor may refer to the same socket, as for the Unix listeners of
    /// several event loops. Closing one of them does not end the watch.
    var mayHaveTwins: Bool { true }

    package final var isClosed: Bool { descriptor < 0 }

    /// The event loop found the descriptor ready and will call ``ready(_:)``, after others.
    ///
    /// - Parameter events: epoll's bits.
    func noted(_ events: UInt32) {}

    /// The event loop found the descriptor ready, or resumes an endpoint that asked for it with
    /// ``EventLoop/resume(_:)``.
    ///
    /// - Parameter events: epoll's bits, and ``EventLoop/resumed``.
    func ready(_ events: UInt32) {}

    /// The deadline of ``setDeadline(milliseconds:)`` has passed. It is cleared before the call.
    open func deadlinePassed() {}

    /// Calls ``deadlinePassed()`` when this time is over, rounded up to a tick; `nil` for never.
    ///
    /// Replaces the deadline that was set before.
    package final func setDeadline(milliseconds: UInt64?) {
        guard let milliseconds else {
            deadlineTick = nil
            return
        }
        let tick = loop.tick(after: milliseconds)
        deadlineTick = tick
        if let filedTick, filedTick <= tick { return }
        loop.file(self, at: tick)
    }

    /// Removes the endpoint and returns its open descriptor, which can be registered again. Late
    /// events are dropped by generation.
    package final func detach() -> Int32 {
        let detached = descriptor
        loop.forget(self)
        openDescriptor = -1
        deadlineTick = nil
        return detached
    }

    /// Gives another endpoint the descriptor, and the place on the event loop.
    final func give(to successor: Endpoint) {
        loop.replace(self, by: successor)
        successor.flow = flow
        openDescriptor = -1
        deadlineTick = nil
    }

    /// Closes the descriptor and removes the endpoint. Late events are dropped by generation.
    open func close() {
        guard descriptor >= 0 else { return }
        loop.forget(self, .byClosing)
        _ = Glibc.close(descriptor)
        openDescriptor = -1
        deadlineTick = nil
    }
}

/// The endpoints of an event loop, each in a slot, and the tokens by which epoll and the timer
/// wheel name them.
///
/// A token is a slot's number and, above it, its generation. An event that arrives late for an
/// endpoint that was closed has an old generation, so it reaches no other endpoint in that slot.
final class EndpointTable {
    private struct Slot {
        var endpoint: Endpoint?
        var generation: UInt32 = 0
    }

    @exclusivity(unchecked) private var slots: [Slot] = []
    @exclusivity(unchecked) private var free: [UInt32] = []

    /// A token for an endpoint that will be stored under it.
    func reserve() -> UInt64 {
        let slot: UInt32
        if let last = free.popLast() {
            slot = last
        } else {
            slot = UInt32(slots.count)
            slots.append(Slot())
        }
        slots[Int(slot)].generation &+= 1
        return UInt64(slots[Int(slot)].generation) << 32 | UInt64(slot)
    }

    func put(_ endpoint: Endpoint, under token: UInt64) {
        slots[Self.slot(token)].endpoint = endpoint
    }

    /// Empties a slot, which is not reused before ``release(_:)``.
    ///
    /// - Returns: the endpoint that was in it.
    @discardableResult
    func remove(_ token: UInt64) -> Endpoint? { slots[Self.slot(token)].endpoint.take() }

    /// Makes an empty slot available again.
    func release(_ slot: Int) { free.append(UInt32(slot)) }

    /// The endpoint under a token; `nil` when it was closed.
    func endpoint(_ token: UInt64) -> Endpoint? {
        let slot = Self.slot(token)
        guard slot < slots.count, slots[slot].generation == UInt32(token >> 32) else { return nil }
        return slots[slot].endpoint
    }

    /// The endpoint in a reserved slot; `nil` when it is empty.
    func endpoint(in slot: Int) -> Endpoint? { slots[slot].endpoint }

    static func slot(_ token: UInt64) -> Int { Int(UInt32(truncatingIfNeeded: token)) }
}

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
