import Synchronization

/// A token bucket without a lock, for all lanes at once (the generic cell rate algorithm).
///
/// One number says when the bucket would be full again; taking a token moves it. Time is the
/// caller's.
package final class Throttle: Sendable {
    /// Nanoseconds in which one token flows in.
    private let interval: UInt64
    /// Nanoseconds in which the whole bucket fills.
    private let fill: UInt64
    private let fullAt = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - perSecond: tokens that flow in, 1…1,000,000.
    ///   - burst: tokens the bucket holds, at least 1.
    package init(perSecond: Int, burst: Int) {
        interval = 1_000_000_000 / UInt64(min(max(perSecond, 1), 1_000_000))
        fill = interval * UInt64(min(max(burst, 1), 1_000_000))
    }

    /// Takes a token.
    ///
    /// - Parameter now: monotonic nanoseconds.
    /// - Returns: `nil` when there was one, otherwise the nanoseconds until there is.
    package func take(now: UInt64) -> UInt64? {
        var seen = fullAt.load(ordering: .relaxed)
        while true {
            let next = max(seen, now) &+ interval
            if next &- now > fill { return next &- now &- fill }
            let exchange = fullAt.compareExchange(
                expected: seen,
                desired: next,
                ordering: .relaxed
            )
            if exchange.exchanged { return nil }
            seen = exchange.original
        }
    }
}
