package import Synchronization

/// How fast tokens flow into a bucket and how many it holds (the generic cell rate algorithm).
///
/// The bucket is one number of the caller's: when it would be full again. 0 is a full one. Time is
/// the caller's too.
package struct TokenRate: Hashable, Sendable {
    /// Nanoseconds in which one token flows in.
    private let interval: UInt64
    /// Nanoseconds in which the whole bucket fills.
    private let fill: UInt64

    /// Refills `count` tokens (1…1,000,000) every `seconds` (1…3600), and the bucket holds
    /// `burst` of them (1…1,000,000).
    package init(_ count: Int, perSeconds seconds: Int = 1, burst: Int) {
        let time = UInt64(min(max(seconds, 1), 3_600)) * 1_000_000_000
        interval = time / UInt64(min(max(count, 1), 1_000_000))
        fill = interval * UInt64(min(max(burst, 1), 1_000_000))
    }

    /// Takes a token: `nil` when there was one, otherwise the nanoseconds until there is. `now` is
    /// monotonic nanoseconds. Where `reserve` tokens are to be left in the bucket, it gives one
    /// only when it holds more.
    package func take(
        from bucket: borrowing Atomic<UInt64>,
        leaving reserve: Int = 0,
        now: UInt64
    ) -> UInt64? {
        // What a full bucket holds of them leaves room for one token at the least.
        let kept = min(interval &* UInt64(min(max(reserve, 0), 1_000_000)), fill - interval)
        var seen = bucket.load(ordering: .relaxed)
        while true {
            if let wait = wait(fullAt: seen, fill - kept, now: now) { return wait }
            let exchange = bucket.compareExchange(
                expected: seen,
                desired: max(seen, now) &+ interval,
                ordering: .relaxed
            )
            if exchange.exchanged { return nil }
            seen = exchange.original
        }
    }

    /// The same of a bucket that one machine owns.
    package func take(from bucket: inout UInt64, now: UInt64) -> UInt64? {
        if let wait = wait(fullAt: bucket, fill, now: now) { return wait }
        bucket = max(bucket, now) &+ interval
        return nil
    }

    /// Takes tokens that may not be there: the bucket then owes them, and gives none before they
    /// have flowed in.
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

    /// Looks for a token and takes none: `nil`, or the nanoseconds until there is one.
    package func wait(in bucket: borrowing Atomic<UInt64>, now: UInt64) -> UInt64? {
        wait(fullAt: bucket.load(ordering: .relaxed), fill, now: now)
    }

    private func wait(fullAt: UInt64, _ most: UInt64, now: UInt64) -> UInt64? {
        let next = max(fullAt, now) &+ interval
        return next &- now > most ? next &- now &- most : nil
    }
}
