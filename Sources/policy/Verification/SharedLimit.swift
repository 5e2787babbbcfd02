import Synchronization
import Telemetry

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
struct SharedLimit: Sendable {
    let rate: TokenRate
    private let buckets: SharedBuckets

    /// - subjects: the most that are distinguished.
    init(_ rate: TokenRate, subjects: Int) {
        self.rate = rate
        buckets = SharedBuckets(subjects: subjects, telling: .all)
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
        buckets.take(subject, at: rate, leaving: reserve, of: gateways, now: now)
    }

    /// The nanoseconds until a token can be taken; `nil` where one can be taken now.
    func wait(for subject: UInt64, now: UInt64) -> UInt64? {
        buckets.wait(for: subject, at: rate, now: now)
    }

    func takeUntold(atMost max: Int) -> [(subject: UInt64, micros: UInt64)] {
        buckets.takeUntold(atMost: max)
    }

    func tellAgain(_ subject: UInt64, micros: UInt64) { buckets.tellAgain(subject, micros: micros) }

    /// The database says when a subject's bucket is full.
    ///
    /// - micros: microseconds until then.
    func set(_ subject: UInt64, fullIn micros: Int64, of gateways: Int, now: UInt64) {
        let time = min(UInt64(min(max(micros, 0), 1 << 52)) * 1_000, rate.longest)
        buckets.set(subject, fullIn: time, of: gateways, now: now)
    }

    func forget() { buckets.forget() }
}

/// The token buckets of many subjects, in a table of fixed size.
///
/// No lock: event loops take tokens while the control queue exchanges. A token that is taken in the
/// moment in which its bucket is set, or its slot changes its subject, may go uncounted.
///
/// A subject has a slot in one row of eight, which its hash chooses. A full row evicts the subject
/// whose bucket is full first: one that has been full for long, where there is one.
final class SharedBuckets: Sendable {
    /// Of which subjects the other gateways hear.
    enum Telling: Sendable {
        case all
        /// Of those that have used half of a bucket. The others stay below half of the limit at
        /// each gateway, where a token costs one for each gateway, so that all of them together
        /// have not used half of it. Most devices are never written about.
        case halfUsed
    }

    fileprivate struct Slot: ~Copyable, Sendable {
        /// 0 in a free slot.
        let subject = Atomic<UInt64>(0)
        /// The bucket of ``TokenRate``.
        let bucket = Atomic<UInt64>(0)
        /// Twice the time in which the tokens taken here of which the database does not know are
        /// refilled, in microseconds. One more where the database is to hear of it.
        let untold = Atomic<UInt64>(0)
    }

    fileprivate final class Row: Sendable {
        let slots = InlineArray<8, Slot> { _ in Slot() }
    }

    fileprivate static let ways = 8
    /// Lost races after which a subject is counted in the slot that it could not get.
    fileprivate static let attemptsMax = 8

    private let rows: [Row]
    private let telling: Telling
    /// Whether a slot has something that the database is to hear.
    private let hasUntold = Atomic<Bool>(false)
    private let evictions = Atomic<UInt64>(0)

    /// - subjects: the most that are distinguished; rounded up to eight times a power of two.
    init(subjects: Int, telling: Telling) {
        self.telling = telling
        var count = 1
        while count * Self.ways < min(subjects, 1 << 20) { count *= 2 }
        rows = (0..<count).map { _ in Row() }
    }

    /// Subjects that were evicted before their buckets were full: what they had used is forgotten.
    var evicted: UInt64 { evictions.load(ordering: .relaxed) }

    /// As ``SharedLimit/take(_:leaving:of:now:)``.
    func take(
        _ subject: UInt64,
        at rate: TokenRate,
        leaving reserve: Int = 0,
        of gateways: Int,
        now: UInt64
    ) -> UInt64? {
        let row = row(of: subject)
        let way = place(of: subject, in: row, now: now)
        leaveOutRefilled(row, way, now: now)
        let wait = rate.take(
            from: row.slots[way].bucket,
            leaving: reserve,
            paying: gateways,
            now: now
        )
        if let wait { return wait }
        row.slots[way].untold.wrappingAdd(rate.micros &<< 1, ordering: .relaxed)
        if telling == .all || rate.isHalfUsed(row.slots[way].bucket, now: now) {
            row.slots[way].untold.bitwiseOr(1, ordering: .relaxed)
            hasUntold.store(true, ordering: .relaxed)
        }
        return nil
    }

    /// What was taken before the bucket was full is refilled at every gateway, so the others need
    /// not hear of it.
    private func leaveOutRefilled(_ row: Row, _ way: Int, now: UInt64) {
        guard telling == .halfUsed, row.slots[way].bucket.load(ordering: .relaxed) <= now
        else { return }
        row.slots[way].untold.store(0, ordering: .relaxed)
    }

    /// As ``SharedLimit/wait(for:now:)``.
    func wait(for subject: UInt64, at rate: TokenRate, now: UInt64) -> UInt64? {
        let row = row(of: subject)
        guard let way = row.place(of: subject) else { return nil }
        return rate.wait(in: row.slots[way].bucket, now: now)
    }

    /// Gives a token back. One of which the database was told meanwhile stays counted there.
    func giveBack(_ subject: UInt64, at rate: TokenRate, of gateways: Int) {
        let row = row(of: subject)
        guard let way = row.place(of: subject) else { return }
        rate.giveBack(to: row.slots[way].bucket, paying: gateways)
        var seen = row.slots[way].untold.load(ordering: .relaxed)
        while seen >> 1 >= rate.micros {
            let exchange = row.slots[way].untold.compareExchange(
                expected: seen,
                desired: seen - rate.micros << 1,
                ordering: .relaxed
            )
            if exchange.exchanged { return }
            seen = exchange.original
        }
    }

    private func row(of subject: UInt64) -> Row {
        rows[Int(truncatingIfNeeded: subject) & (rows.count - 1)]
    }

    /// The place of a subject, which gets one where it has none.
    private func place(of subject: UInt64, in row: Row, now: UInt64) -> Int {
        if let known = row.place(of: subject) { return known }
        let made = row.makePlace(for: subject)
        if made.evictedFullAt > now { evictions.wrappingAdd(1, ordering: .relaxed) }
        return made.way
    }

    // MARK: The other gateways

    /// What was taken and the database is to hear of: of the subjects that have taken most, `max`
    /// at most, as the time in which it is refilled. What is left out comes later, and costs one
    /// token for each gateway until then.
    func takeUntold(atMost max: Int) -> [(subject: UInt64, micros: UInt64)] {
        guard hasUntold.exchange(false, ordering: .relaxed) else { return [] }
        var found: [(row: Row, way: Int, micros: UInt64)] = []
        for row in rows {
            for way in 0..<Self.ways {
                let untold = row.slots[way].untold.load(ordering: .relaxed)
                if untold & 1 == 1 { found.append((row, way, untold >> 1)) }
            }
        }
        if found.count > max {
            found.sort { $0.micros > $1.micros }
            found.removeLast(found.count - max)
            hasUntold.store(true, ordering: .relaxed)
        }
        return found.map { row, way, _ in
            (
                row.slots[way].subject.load(ordering: .relaxed),
                row.slots[way].untold.exchange(0, ordering: .relaxed) >> 1
            )
        }
    }

    /// The database did not get what was to be told.
    func tellAgain(_ subject: UInt64, micros: UInt64) {
        let row = row(of: subject)
        guard let way = row.place(of: subject) else { return }
        row.slots[way].untold.wrappingAdd(micros &<< 1, ordering: .relaxed)
        row.slots[way].untold.bitwiseOr(1, ordering: .relaxed)
        hasUntold.store(true, ordering: .relaxed)
    }

    /// The database says when a subject's bucket is full.
    ///
    /// - time: nanoseconds until then, of which the caller has checked that it is not too long.
    func set(_ subject: UInt64, fullIn time: UInt64, of gateways: Int, now: UInt64) {
        let row = row(of: subject)
        guard time > 0 || row.place(of: subject) != nil else { return }
        let way = place(of: subject, in: row, now: now)
        leaveOutRefilled(row, way, now: now)
        let untold = min(row.slots[way].untold.load(ordering: .relaxed) >> 1, 1 << 42)
        let owed = untold * 1_000 * UInt64(min(max(gateways, 1), 1_000))
        row.slots[way].bucket.store(now &+ time &+ owed, ordering: .relaxed)
    }

    /// Forgets all subjects: from now on they are hashed under another key.
    func forget() {
        for row in rows { for way in 0..<Self.ways { row.clear(way, for: 0) } }
    }
}

extension SharedBuckets.Row {
    fileprivate func place(of subject: UInt64) -> Int? {
        (0..<SharedBuckets.ways).first { way in
            slots[way].subject.load(ordering: .relaxed) == subject
        }
    }

    /// A place for a subject that has none, and when the bucket that was there is full.
    fileprivate func makePlace(for subject: UInt64) -> (way: Int, evictedFullAt: UInt64) {
        var way = leastUsed
        for _ in 0..<SharedBuckets.attemptsMax {
            let other = slots[way].subject.load(ordering: .relaxed)
            let fullAt = slots[way].bucket.load(ordering: .relaxed)
            let exchange = slots[way].subject.compareExchange(
                expected: other,
                desired: subject,
                ordering: .relaxed
            )
            if exchange.exchanged {
                clear(way, for: subject)
                return (way, other == 0 ? 0 : fullAt)
            }
            if let known = place(of: subject) { return (known, 0) }
            way = leastUsed
        }
        return (way, 0)
    }

    private var leastUsed: Int {
        var found = 0
        var fullAt = UInt64.max
        for way in 0..<SharedBuckets.ways {
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

/// A limit that the gateways of a fleet share. The raw values are in the database.
package enum FleetLimit: Int64, CaseIterable, Sendable {
    /// `enrolment.rate` and `burst`, of all clients.
    case rate = 1
    /// An address's share of them.
    case address = 2
    /// `enrolment.per_attester`.
    case attester = 3
    /// `rate` of a rule, of each device.
    case device = 4

    /// The most subjects of a limit that the other gateways learn of at once.
    static let toldMax = 128

    /// Tokens that were taken here.
    package struct Use: Equatable, Sendable {
        package let limit: FleetLimit
        /// A hash; it names nothing to a reader who has not its key.
        package let subject: UInt64
        /// The time in which they are refilled, in microseconds, at most 2^56.
        package let micros: Int64

        init(_ limit: FleetLimit, _ untold: (subject: UInt64, micros: UInt64)) {
            (self.limit, subject) = (limit, untold.subject)
            micros = Int64(min(untold.micros, 1 << 56))
        }
    }

    /// What the database says of a subject.
    package struct Level: Sendable {
        let limit: FleetLimit
        let subject: UInt64
        /// Microseconds until the bucket is full.
        let fullIn: Int64

        /// `nil` for a limit that this version does not know.
        package init?(limit: Int64, subject: UInt64, fullIn: Int64) {
            guard let limit = FleetLimit(rawValue: limit), subject != 0 else { return nil }
            (self.limit, self.subject, self.fullIn) = (limit, subject, fullIn)
        }
    }
}

/// The names of subjects in a fleet, and the number of its gateways.
///
/// The gateways share the key of the hash by which they name subjects to each other. Until it is
/// known, this gateway has a key of its own.
final class FleetNames: Sendable {
    /// The most gateways among which a limit is shared.
    private static let gatewaysMax = 256

    private let count = Atomic<Int>(1)
    /// A reader may see half of it change, at the gateway's start; then one subject has another
    /// name once.
    private let key0: Atomic<UInt64>
    private let key1: Atomic<UInt64>

    /// - key: random words.
    init(key: (UInt64, UInt64)) {
        key0 = Atomic(key.0)
        key1 = Atomic(key.1)
    }

    /// The gateways of the fleet; 1 without one.
    var gateways: Int {
        get { count.load(ordering: .relaxed) }
        set { count.store(min(max(newValue, 1), Self.gatewaysMax), ordering: .relaxed) }
    }

    private var words: (UInt64, UInt64) {
        (key0.load(ordering: .relaxed), key1.load(ordering: .relaxed))
    }

    /// Takes the fleet's key.
    ///
    /// - Returns: whether it is another one, so that all that was counted has to be forgotten.
    func share(under key: (UInt64, UInt64)) -> Bool {
        guard key != words else { return false }
        key0.store(key.0, ordering: .relaxed)
        key1.store(key.1, ordering: .relaxed)
        return true
    }

    func subject(_ word: UInt64) -> UInt64 { name(InstallHash(key: words).hash(word)) }

    /// - digest: a multiple of 8 bytes, below 256.
    func subject(_ digest: Span<UInt8>) -> UInt64 { name(InstallHash(key: words).hash(digest)) }

    /// 0 names no subject.
    private func name(_ hash: Int) -> UInt64 { max(UInt64(bitPattern: Int64(hash)), 1) }
}
