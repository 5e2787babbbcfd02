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

    /// The microseconds in which this number of tokens is refilled, at most 2^56.
    package func micros(of count: UInt64) -> Int64 {
        let (micros, overflow) = max(interval / 1_000, 1).multipliedReportingOverflow(by: count)
        return overflow ? 1 << 56 : Int64(min(micros, 1 << 56))
    }

    /// Sets the bucket: full after this number of microseconds, at most after twice the time in
    /// which it fills, but for the tokens that it owes beside.
    package func set(
        _ bucket: borrowing Atomic<UInt64>,
        fullIn micros: Int64,
        owing count: Int,
        now: UInt64
    ) {
        let time = min(UInt64(min(max(micros, 0), 1 << 52)) * 1_000, min(fill, 1 << 61) * 2)
        let owed = min(interval &* UInt64(min(max(count, 0), 100_000)), 1 << 62)
        bucket.store(now &+ time &+ owed, ordering: .relaxed)
    }

    /// Checks for a token and takes none: `nil`, or the nanoseconds until there is one.
    package func wait(in bucket: borrowing Atomic<UInt64>, now: UInt64) -> UInt64? {
        wait(fullAt: bucket.load(ordering: .relaxed), fill, now: now)
    }

    private func wait(fullAt: UInt64, _ most: UInt64, now: UInt64) -> UInt64? {
        let next = max(fullAt, now) &+ interval
        return next &- now > most ? next &- now &- most : nil
    }
}
