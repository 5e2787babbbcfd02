import CLinux

/// Time that never goes back, for durations.
package enum MonotonicClock {
    /// Nanoseconds since some moment before the start.
    package static var nanoseconds: UInt64 { clinux_monotonic_nanoseconds() }

    /// Milliseconds as ``Lane/now`` has them, for what is on no lane.
    package static var milliseconds: UInt64 { clinux_coarse_milliseconds() }
}
