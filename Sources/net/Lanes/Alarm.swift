import CLinux

/// Wakes a lane at a moment, to the microsecond.
///
/// Deadlines of connections are rounded to ticks of a wheel and cost nothing to move; an alarm is a
/// timer of the kernel, and setting it is a system call.
package final class Alarm: Endpoint {
    /// Called at the moment.
    package var rang: (() -> Void)?

    /// An alarm that is not set. Not before the lane was started.
    ///
    /// - Throws: `SocketError` for want of descriptors.
    package init(on lane: Lane) throws(SocketError) {
        let descriptor = clinux_alarm_create()
        guard descriptor >= 0 else { throw SocketError("timerfd_create") }
        super.init(descriptor: descriptor, on: lane)
        try lane.register(self, events: Lane.bothEdges)
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
