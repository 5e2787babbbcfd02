internal import Synchronization

/// Which serial numbers were spent, for the last so many of them.
///
/// Numbers are issued in order; number n has its place at n modulo the capacity, and its round is n
/// / capacity. Pieces ("segments") are reused as a whole when the last challenge in them has
/// expired.
///
/// Lock-free. A word holds the round of its bits in its upper half and 32 spent bits below. To
/// spend is one compare-and-exchange from a word of the same or an earlier round; the round in a
/// word never falls. So there is no moment at which a bit is cleared for a round that it belongs
/// to.
final class SpentRing: Sendable {
    /// Numbers of one segment.
    static let segmentCount: UInt64 = 16_384
    private static let wordCount = 512

    /// One segment's words, made when the first of its numbers is spent: 4 KiB.
    private final class Words: Sendable {
        let words = InlineArray<512, Atomic<UInt64>> { _ in Atomic(0) }
    }

    private final class Segment: Sendable {
        let words = AtomicLazyReference<Words>()
        /// The latest expiry of a number issued here, in the current round.
        let lastExpiry = Atomic<Int64>(.min)
    }

    /// Numbers in the ring.
    let capacity: UInt64
    /// Seconds that a challenge is good.
    let lifetime: Int64
    private let segments: [Segment]
    private let next = Atomic<UInt64>(0)

    /// - `capacity`: rounded up to whole segments, and one more so that reuse by segments
    ///   never takes from the capacity.
    init(capacity: Int, lifetime: Int64) {
        precondition(capacity > 0 && capacity <= 1 << 40, "SpentRing: capacity out of range")
        precondition(lifetime > 0 && lifetime <= 1 << 32, "SpentRing: lifetime out of range")
        let size = Int(Self.segmentCount)
        let count = (capacity + size - 1) / size + 1
        segments = (0..<count).map { _ in Segment() }
        self.capacity = UInt64(count) * Self.segmentCount
        self.lifetime = lifetime
    }

    /// Numbers issued so far.
    var issued: UInt64 { next.load(ordering: .relaxed) }

    /// Octets that the spent bits take now; at most a quarter of ``capacity``.
    var bitmapOctets: Int {
        segments.count { $0.words.load() != nil } * Self.wordCount * 8
    }

    /// Takes the next number; `nil` while the number one round earlier may still be good.
    func issue(expiry: Int64, now: Int64) -> UInt64? {
        while true {
            let number = next.load(ordering: .relaxed)
            let segment = segments[place(number).segment]
            let opens = number % Self.segmentCount == 0
            if opens, number >= capacity,
                !isOver(segment.lastExpiry.load(ordering: .relaxed), now: now)
            {
                return nil
            }
            let (isTaken, _) = next.compareExchange(
                expected: number,
                desired: number + 1,
                ordering: .relaxed
            )
            guard isTaken else { continue }
            // A lane that opens a segment and one that goes on in it may write in either order,
            // with times of day that differ by a turn at most. It decides when the place is free
            // for reuse, and nothing else.
            if opens {
                segment.lastExpiry.store(expiry, ordering: .relaxed)
            } else if segment.lastExpiry.load(ordering: .relaxed) < expiry {
                segment.lastExpiry.store(expiry, ordering: .relaxed)
            }
            return number
        }
    }

    /// Whether a challenge of that expiry is no longer good.
    ///
    /// One that seems to come from the future by more than its whole lifetime was issued before the
    /// clock stepped back. It counts as expired too, or such challenges would fill the ring until
    /// the clock has caught up.
    func isOver(_ expiry: Int64, now: Int64) -> Bool {
        guard now < expiry else { return true }
        let (latest, overflow) = now.addingReportingOverflow(2 * lifetime)
        return !overflow && expiry > latest
    }

    /// Whether the ring has gone on to a later round in this number's segment, or never issued it.
    func isRetired(_ number: UInt64) -> Bool {
        let next = self.next.load(ordering: .relaxed)
        guard number < next else { return true }
        // The last segment begun, and whether this number's segment lies a whole round before it.
        let newest = (next - 1) / Self.segmentCount
        return newest - number / Self.segmentCount >= UInt64(segments.count)
    }

    /// Whether the number was spent, or its place belongs to a later round.
    func isSpent(_ number: UInt64) -> Bool {
        let place = place(number)
        guard let words = segments[place.segment].words.load() else { return false }
        let word = words.words[place.word].load(ordering: .acquiring)
        guard word >> 32 == place.round else { return word >> 32 > place.round }
        return word & place.bit != 0
    }

    /// Spends the number: true for exactly one of all callers, and never for a retired number.
    func spend(_ number: UInt64) -> Bool {
        let place = place(number)
        guard !isRetired(number), place.round <= UInt64(UInt32.max) else { return false }
        let lazy = segments[place.segment]
        let words = lazy.words.load() ?? lazy.words.storeIfNil(Words())
        while true {
            let word = words.words[place.word].load(ordering: .acquiring)
            let round = word >> 32
            guard round <= place.round else { return false }
            let bits = round == place.round ? word & 0xFFFF_FFFF : 0
            guard bits & place.bit == 0 else { return false }
            let (isSet, _) = words.words[place.word].compareExchange(
                expected: word,
                desired: place.round << 32 | bits | place.bit,
                ordering: .acquiringAndReleasing
            )
            if isSet { return true }
        }
    }

    /// Where a number's bit is. Every part is a remainder of the number, hence in range.
    private func place(_ number: UInt64) -> (segment: Int, word: Int, bit: UInt64, round: UInt64) {
        (
            Int(number / Self.segmentCount % UInt64(segments.count)),
            Int(number % Self.segmentCount / 32),
            1 << (number % 32),
            number / capacity
        )
    }
}
