import Synchronization

/// A token bucket without a lock, for all lanes at once.
package final class Throttle: Sendable {
    private let rate: TokenRate
    private let fullAt = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - perSecond: tokens that flow in, 1…1,000,000.
    ///   - burst: tokens the bucket holds, at least 1.
    package init(perSecond: Int, burst: Int) { rate = TokenRate(perSecond, burst: burst) }

    /// Takes a token.
    ///
    /// - Parameter now: monotonic nanoseconds.
    /// - Returns: `nil` when there was one, otherwise the nanoseconds until there is.
    package func take(now: UInt64) -> UInt64? { rate.take(from: fullAt, now: now) }
}
