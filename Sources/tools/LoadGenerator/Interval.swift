import Histogram

/// What happened since the last beat.
struct Interval: Sendable {
    var latencies = Measurements.latencies()
    var sent: UInt64 = 0
    var answered: UInt64 = 0
    var deviations: UInt64 = 0
    var failures: UInt64 = 0
    var backlog: UInt64 = 0

    mutating func add(_ other: Interval) {
        latencies.add(other.latencies)
        sent += other.sent
        answered += other.answered
        deviations += other.deviations
        failures += other.failures
        backlog += other.backlog
    }
}
