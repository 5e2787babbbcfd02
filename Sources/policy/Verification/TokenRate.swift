package import Synchronization

/// The refill rate and the size of a token bucket (the generic cell rate algorithm, GCRA).
///
/// The caller keeps the bucket as one number: the time when it will be full again. 0 is a full
/// bucket. The caller gives the time.
package struct TokenRate: Hashable, Sendable {
    /// Nanoseconds until one token is refilled.
    private let interval: UInt64
    /// Nanoseconds until the whole bucket is refilled.
    private let fill: UInt64

    /// Refills `count` tokens (1…1,000,000) every `seconds` (1…86,400), and the bucket holds
    /// `burst` of them (1…1,000,000).
    package init(_ count: Int, perSeconds seconds: Int = 1, burst: Int) {
        let period = UInt64(min(max(seconds, 1), 86_400)) * 1_000_000_000
        interval = period / UInt64(min(max(count, 1), 1_000_000))
        let (time, overflow) = interval.multipliedReportingOverflow(
            by: UInt64(min(max(burst, 1), 1_000_000))
        )
        // 292 years and more are as good as for ever.
        fill = overflow ? UInt64.max / 2 : min(time, UInt64.max / 2)
    }

    /// Takes a token: `nil` when there was one, otherwise the nanoseconds until there is. `now` is
    /// monotonic nanoseconds. With `reserve`, the bucket gives a token only when it holds more than
    /// that. With `price`, a token is paid with this number of tokens (1…1000); the bucket then
    /// owes those that it does not hold.
    package func take(
        from bucket: borrowing Atomic<UInt64>,
        leaving reserve: Int = 0,
        paying price: Int = 1,
        now: UInt64
    ) -> UInt64? {
        // The reserve leaves room for at least one token of a full bucket.
        let kept = min(interval &* UInt64(min(max(reserve, 0), 1_000_000)), fill - interval)
        let cost = interval &* UInt64(min(max(price, 1), 1_000))
        var seen = bucket.load(ordering: .relaxed)
        while true {
            if let wait = wait(fullAt: seen, fill - kept, now: now) { return wait }
            let exchange = bucket.compareExchange(
                expected: seen,
                desired: max(seen, now) &+ cost,
                ordering: .relaxed
            )
            if exchange.exchanged { return nil }
            seen = exchange.original
        }
    }

    /// Takes a token from a bucket that one machine owns.
    package func take(from bucket: inout UInt64, now: UInt64) -> UInt64? {
        if let wait = wait(fullAt: bucket, fill, now: now) { return wait }
        bucket = max(bucket, now) &+ interval
        return nil
    }

    /// Takes tokens that may not be there. The bucket then owes them, and gives none before they
    /// are refilled.
    package func owe(_ count: Int, to bucket: borrowing Atomic<UInt64>, now: UInt64) {
        let time = interval &* UInt64(min(max(count, 0), 1_000_000))
        var seen = bucket.load(ordering: .relaxed)
        while true {
            let exchange = bucket.compareExchange(
                expected: seen,
                desired: max(seen, now) &+ time,
                ordering: .relaxed
            )
            if exchange.exchanged { return }
            seen = exchange.original
        }
    }

    /// The microseconds in which a token is refilled.
    var micros: UInt64 { max(interval / 1_000, 1) }

    /// Gives a token back that was taken for nothing.
    ///
    /// - price: what was paid for it.
    func giveBack(to bucket: borrowing Atomic<UInt64>, paying price: Int) {
        let cost = interval &* UInt64(min(max(price, 1), 1_000))
        var seen = bucket.load(ordering: .relaxed)
        while true {
            let exchange = bucket.compareExchange(
                expected: seen,
                desired: seen > cost ? seen - cost : 0,
                ordering: .relaxed
            )
            if exchange.exchanged { return }
            seen = exchange.original
        }
    }

    /// Whether less than half of the bucket is left.
    func isHalfUsed(_ bucket: borrowing Atomic<UInt64>, now: UInt64) -> Bool {
        let fullAt = bucket.load(ordering: .relaxed)
        return fullAt > now && fullAt - now > fill / 2
    }

    /// The longest time that a bucket may need to be full by what the database says, beside what it
    /// owes, in nanoseconds.
    var longest: UInt64 { min(fill, 1 << 61) * 2 }

    /// Checks for a token and takes none: `nil`, or the nanoseconds until there is one.
    package func wait(in bucket: borrowing Atomic<UInt64>, now: UInt64) -> UInt64? {
        wait(fullAt: bucket.load(ordering: .relaxed), fill, now: now)
    }

    private func wait(fullAt: UInt64, _ most: UInt64, now: UInt64) -> UInt64? {
        let next = max(fullAt, now) &+ interval
        return next &- now > most ? next &- now &- most : nil
    }
}

/// A token bucket without a lock, which all event loops share.
package final class Throttle: Sendable {
    private let rate: TokenRate
    private let fullAt = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - perSecond: tokens refilled per second, 1…1,000,000.
    ///   - burst: tokens the bucket holds, at least 1.
    package init(perSecond: Int, burst: Int) { rate = TokenRate(perSecond, burst: burst) }

    /// Takes a token.
    ///
    /// - Parameter now: monotonic nanoseconds.
    /// - Returns: `nil` when there was one, otherwise the nanoseconds until there is.
    package func take(now: UInt64) -> UInt64? { rate.take(from: fullAt, now: now) }
}
