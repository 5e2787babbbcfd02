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

/// A limit of each of many subjects, such as addresses, that holds for all gateways of a fleet
/// together, though each gateway decides alone and at once.
///
/// A gateway that takes a token pays one for each gateway of the fleet from its own bucket, as if
/// all of them took one in the same moment. So until it hears of the others it gives its share of
/// what the fleet has left, and no more. Each second it tells the database what it has taken, and
/// sets its bucket to what the database says: what all have taken together, each token once.
///
/// What a fleet can give too much: all gateways may spend their shares before they hear of each
/// other. That is one full bucket and a second's refill, at most half of that more by gateways that
/// have not heard of all yet, and up to two tokens of each gateway, since shares are rounded up. It
/// is owed: nothing is given until it is refilled. A gateway that is cut off from the database goes
/// on with its share of the rate. With one gateway all of this is a token bucket.
///
/// No lock: event loops take tokens while the control queue exchanges. A token that is taken in the
/// moment in which its bucket is set, or its slot changes its subject, may go uncounted.
///
/// A subject has a slot in one row of eight, which its hash chooses. A full row gives up the
/// subject that has taken least.
final class SharedLimit: Sendable {
    fileprivate struct Slot: ~Copyable, Sendable {
        /// 0 in a free slot.
        let subject = Atomic<UInt64>(0)
        /// The bucket of ``TokenRate``.
        let bucket = Atomic<UInt64>(0)
        /// The tokens taken here of which the database does not know.
        let untold = Atomic<UInt64>(0)
    }

    fileprivate final class Row: Sendable {
        let slots = InlineArray<8, Slot> { _ in Slot() }
    }

    fileprivate static let ways = 8
    /// Lost races after which a subject is counted in the slot that it could not get.
    fileprivate static let attemptsMax = 8

    let rate: TokenRate
    private let rows: [Row]
    /// Whether a slot has something untold.
    private let hasUntold = Atomic<Bool>(false)

    /// - subjects: the most that are distinguished; rounded up to eight times a power of two.
    init(_ rate: TokenRate, subjects: Int) {
        self.rate = rate
        var count = 1
        while count * Self.ways < min(subjects, 1 << 20) { count *= 2 }
        rows = (0..<count).map { _ in Row() }
    }

    /// Takes a token: `nil`, or the nanoseconds until there is one.
    ///
    /// - subject: a hash under a secret key, not 0.
    /// - reserve: tokens that have to remain.
    /// - gateways: of the fleet, at least 1.
    func take(
        _ subject: UInt64,
        leaving reserve: Int = 0,
        of gateways: Int,
        now: UInt64
    ) -> UInt64? {
        let row = row(of: subject)
        let way = row.place(of: subject) ?? row.makePlace(for: subject)
        let wait = rate.take(
            from: row.slots[way].bucket,
            leaving: reserve,
            paying: gateways,
            now: now
        )
        if let wait { return wait }
        row.slots[way].untold.wrappingAdd(1, ordering: .relaxed)
        hasUntold.store(true, ordering: .relaxed)
        return nil
    }

    /// The nanoseconds until a token can be taken; `nil` where one can be taken now.
    func wait(for subject: UInt64, now: UInt64) -> UInt64? {
        let row = row(of: subject)
        guard let way = row.place(of: subject) else { return nil }
        return rate.wait(in: row.slots[way].bucket, now: now)
    }

    private func row(of subject: UInt64) -> Row {
        rows[Int(truncatingIfNeeded: subject) & (rows.count - 1)]
    }

    // MARK: The other gateways

    /// The tokens taken of which the database does not know: those of the subjects that have taken
    /// most, `max` at most. What is left out comes later, and costs one token for each gateway
    /// until then.
    func takeUntold(atMost max: Int) -> [(subject: UInt64, tokens: UInt64)] {
        guard hasUntold.exchange(false, ordering: .relaxed) else { return [] }
        var found: [(row: Row, way: Int, tokens: UInt64)] = []
        for row in rows {
            for way in 0..<Self.ways {
                let tokens = row.slots[way].untold.load(ordering: .relaxed)
                if tokens > 0 { found.append((row, way, tokens)) }
            }
        }
        if found.count > max {
            found.sort { $0.tokens > $1.tokens }
            found.removeLast(found.count - max)
            hasUntold.store(true, ordering: .relaxed)
        }
        return found.map { row, way, _ in
            (
                row.slots[way].subject.load(ordering: .relaxed),
                row.slots[way].untold.exchange(0, ordering: .relaxed)
            )
        }
    }

    /// The database did not get what was to be told.
    func tellAgain(_ subject: UInt64, tokens: UInt64) {
        let row = row(of: subject)
        guard let way = row.place(of: subject) else { return }
        row.slots[way].untold.wrappingAdd(tokens, ordering: .relaxed)
        hasUntold.store(true, ordering: .relaxed)
    }

    /// The database says when a subject's bucket is full.
    ///
    /// - micros: microseconds until then.
    func set(_ subject: UInt64, fullIn micros: Int64, of gateways: Int, now: UInt64) {
        let row = row(of: subject)
        let way: Int
        if let known = row.place(of: subject) {
            way = known
        } else {
            guard micros > 0 else { return }
            way = row.makePlace(for: subject)
        }
        let untold = Int(clamping: row.slots[way].untold.load(ordering: .relaxed))
        let (owed, _) = untold.multipliedReportingOverflow(by: gateways)
        rate.set(row.slots[way].bucket, fullIn: micros, owing: owed, now: now)
    }

    /// Forgets all subjects: from now on they are hashed under another key.
    func forget() {
        for row in rows { for way in 0..<Self.ways { row.clear(way, for: 0) } }
    }
}

extension SharedLimit.Row {
    fileprivate func place(of subject: UInt64) -> Int? {
        (0..<SharedLimit.ways).first { way in
            slots[way].subject.load(ordering: .relaxed) == subject
        }
    }

    /// A place for a subject that has none.
    fileprivate func makePlace(for subject: UInt64) -> Int {
        var way = leastUsed
        for _ in 0..<SharedLimit.attemptsMax {
            let other = slots[way].subject.load(ordering: .relaxed)
            let exchange = slots[way].subject.compareExchange(
                expected: other,
                desired: subject,
                ordering: .relaxed
            )
            if exchange.exchanged {
                clear(way, for: subject)
                return way
            }
            if let known = place(of: subject) { return known }
            way = leastUsed
        }
        return way
    }

    private var leastUsed: Int {
        var found = 0
        var fullAt = UInt64.max
        for way in 0..<SharedLimit.ways {
            guard slots[way].subject.load(ordering: .relaxed) != 0 else { return way }
            let other = slots[way].bucket.load(ordering: .relaxed)
            if other < fullAt { (found, fullAt) = (way, other) }
        }
        return found
    }

    fileprivate func clear(_ way: Int, for subject: UInt64) {
        slots[way].subject.store(subject, ordering: .relaxed)
        slots[way].bucket.store(0, ordering: .relaxed)
        slots[way].untold.store(0, ordering: .relaxed)
    }
}
