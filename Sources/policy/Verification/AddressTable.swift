package import AppAttest
package import HTTPWire
import Synchronization

/// What each client address has used of its limits: a table of fixed size, which all event loops
/// share.
///
/// It is shared, since the kernel spreads the connections of one address over the event loops. Its
/// places are found and counted without a lock, since every request uses them. An address is looked
/// up once, when its connection is accepted (or a trusted proxy names it); from then on its holder
/// has the place.
///
/// An IPv6 address counts as its /64, which is what a provider gives one subscriber.
///
/// When it is full: an address has its place in one row of eight. A hash under a secret key chooses
/// the row, so that an attacker can't aim at one. A full row evicts the least recently used
/// unreferenced address; one with open connections is never evicted. Where all eight are held, a
/// new address has no limits. If it were refused, eight addresses could shut out others.
///
/// A slot's `holder` is the address's tag, 40 bits of its hash, above the number of its holders, 24
/// bits. So holding and evicting are each one compare-and-exchange on one word, and a held address
/// is never evicted. One event loop at a time makes a place in a row: two that bring the same new
/// address in the same moment would give it two places, each with limits of its own.
package final class AddressTable: Sendable {
    /// The result of holding an address.
    package enum Holding: Sendable {
        case held(AddressEntry)
        /// The address has the most holders allowed.
        case refused
        /// Its row is full of held addresses.
        case noRoom
    }

    /// 56 bytes.
    struct Slot: ~Copyable, Sendable {
        let holder = Atomic<UInt64>(0)
        /// The buckets of ``TokenRate``.
        let requests = Atomic<UInt64>(0)
        let calls = Atomic<UInt64>(0)
        let failures = Atomic<UInt64>(0)
        /// The time of the last place in this address's own queue for enrolments.
        let enrolmentQueue = Atomic<UInt64>(0)
        /// Bytes of content that are held for the address; 0 when the slot is free.
        let held = Atomic<Int>(0)
        /// Monotonic nanoseconds.
        let usedAt = Atomic<UInt64>(0)
    }

    final class Row: Sendable {
        let slots = InlineArray<8, Slot> { _ in Slot() }
        /// Held while a place is made for a new address.
        let making = Mutex(())
    }

    fileprivate static let ways = 8
    fileprivate static let holdersMask: UInt64 = 0xFF_FFFF
    /// Marks a slot that changes its address; it reads as held.
    fileprivate static let changing = UInt64.max
    /// Lost races after which a new address goes without a place.
    fileprivate static let attemptsMax = 8

    private let rows: [Row]
    private let key: (UInt64, UInt64)

    /// - Parameters:
    ///   - capacity: addresses, 8…16,777,216; rounded up to a power of two.
    ///   - key: random, and secret.
    package init(capacity: Int, key: (UInt64, UInt64)) {
        var count = 1
        while count * Self.ways < min(capacity, 1 << 24) { count *= 2 }
        rows = (0..<count).map { _ in Row() }
        self.key = key
    }

    /// The number of addresses for which there is room.
    package var capacity: Int { rows.count * Self.ways }

    /// Holds the place of an address, and makes the place if there is none.
    ///
    /// `now` is monotonic nanoseconds, `max` the most holders, at least 1; `nil` for no limit.
    package func hold(_ address: IPAddress, now: UInt64, max: Int?) -> Holding {
        hold(hash: hash(of: address), now: now, max: max)
    }

    /// Holds the place of a key, in a table that has keys instead of addresses.
    package func hold(_ key: KeyID, now: UInt64) -> Holding {
        var hasher = Hasher()
        hasher.combine(self.key.0)
        hasher.combine(self.key.1)
        hasher.combine(key)
        return hold(hash: UInt64(truncatingIfNeeded: hasher.finalize()), now: now, max: nil)
    }

    private func hold(hash: UInt64, now: UInt64, max: Int?) -> Holding {
        let row = rows[Int(truncatingIfNeeded: hash) & (rows.count - 1)]
        // Neither the tag of an empty slot nor that of a changing one.
        let tag = Swift.max(1, min(hash >> 24, (1 << 40) - 2))
        let most = Self.mostHolders(max)
        if let holding = row.find(tag, now: now, most: most) { return holding }
        return row.making.withLock { _ in row.make(tag, now: now, most: most) }
    }

    /// The most holders of a slot, as far as its 24 bits can count them.
    fileprivate static func mostHolders(_ max: Int?) -> UInt64 {
        min(UInt64(Swift.max(max ?? .max, 1)), holdersMask - 1)
    }

    /// The standard library's SipHash, with a secret key of ours: an attacker can't tell which
    /// addresses agree in some of its bits.
    package func hash(of address: IPAddress) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(key.0)
        hasher.combine(key.1)
        switch address {
        case .v4(let address): hasher.combine(address)
        case .v6(let high, _): hasher.combine(high)
        }
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }
}

extension AddressTable.Row {
    /// Holds the slot with this tag; `nil` when there is none.
    fileprivate func find(_ tag: UInt64, now: UInt64, most: UInt64) -> AddressTable.Holding? {
        for way in 0..<AddressTable.ways {
            var word = slots[way].holder.load(ordering: .acquiring)
            while word >> 24 == tag {
                guard word & AddressTable.holdersMask < most else { return .refused }
                let slot = slots[way].holder.compareExchange(
                    expected: word,
                    desired: word &+ 1,
                    ordering: .acquiring
                )
                if slot.exchanged {
                    slots[way].usedAt.store(now, ordering: .relaxed)
                    return .held(AddressEntry(row: self, way: way))
                }
                word = slot.original
            }
        }
        return nil
    }

    /// Makes a place for the tag, unless another event loop has just made it. Under ``making``.
    fileprivate func make(_ tag: UInt64, now: UInt64, most: UInt64) -> AddressTable.Holding {
        for _ in 0..<AddressTable.attemptsMax {
            if let holding = find(tag, now: now, most: most) { return holding }
            guard let (way, word) = leastRecentlyUsed() else { return .noRoom }
            // Fails when an event loop holds the address that is to go.
            let slot = slots[way].holder.compareExchange(
                expected: word,
                desired: AddressTable.changing,
                ordering: .acquiring
            )
            guard slot.exchanged else { continue }
            slots[way].requests.store(0, ordering: .relaxed)
            slots[way].calls.store(0, ordering: .relaxed)
            slots[way].failures.store(0, ordering: .relaxed)
            slots[way].enrolmentQueue.store(0, ordering: .relaxed)
            slots[way].held.store(0, ordering: .relaxed)
            slots[way].usedAt.store(now, ordering: .relaxed)
            slots[way].holder.store(tag << 24 | 1, ordering: .releasing)
            return .held(AddressEntry(row: self, way: way))
        }
        return .noRoom
    }

    /// Holds a held slot once more; `false` when it has the most holders allowed.
    func holdAgain(_ way: Int, max: Int?) -> Bool {
        let most = AddressTable.mostHolders(max)
        var word = slots[way].holder.load(ordering: .relaxed)
        while word & AddressTable.holdersMask < most {
            let slot = slots[way].holder.compareExchange(
                expected: word,
                desired: word &+ 1,
                ordering: .acquiring
            )
            if slot.exchanged { return true }
            word = slot.original
        }
        return false
    }

    /// The least recently used unreferenced slot, with its word.
    fileprivate func leastRecentlyUsed() -> (way: Int, word: UInt64)? {
        var found: (way: Int, word: UInt64)?
        var oldest = UInt64.max
        for way in 0..<AddressTable.ways {
            let word = slots[way].holder.load(ordering: .relaxed)
            guard word & AddressTable.holdersMask == 0 else { continue }
            let usedAt = word == 0 ? 0 : slots[way].usedAt.load(ordering: .relaxed)
            guard found == nil || usedAt < oldest else { continue }
            (found, oldest) = ((way, word), usedAt)
        }
        return found
    }
}

/// The place of one client address in an ``AddressTable``, held: it stays that address's until
/// ``release(now:)``, which the holder calls once.
package struct AddressEntry: Sendable {
    let row: AddressTable.Row
    let way: Int

    /// Takes a request's token: `nil`, or the nanoseconds until there is one.
    package func takeRequest(_ rate: TokenRate, now: UInt64) -> UInt64? {
        rate.take(from: row.slots[way].requests, now: now)
    }

    /// Takes a token of a call of the gateway's own endpoints, like ``takeRequest(_:now:)``.
    package func takeCall(_ rate: TokenRate, now: UInt64) -> UInt64? {
        rate.take(from: row.slots[way].calls, now: now)
    }

    /// Charges this number of further tokens for the call.
    package func oweCalls(_ count: Int, _ rate: TokenRate, now: UInt64) {
        rate.owe(count, to: row.slots[way].calls, now: now)
    }

    /// The queue of the callers of this address that are over its share.
    func enqueueEnrolment(_ body: (borrowing Atomic<UInt64>) -> UInt64) -> UInt64 {
        body(row.slots[way].enrolmentQueue)
    }

    /// Whether the gateway may verify a signature for this address: `nil`, or the nanoseconds until
    /// it may.
    package func failureWait(_ rate: TokenRate, now: UInt64) -> UInt64? {
        rate.wait(in: row.slots[way].failures, now: now)
    }

    /// Counts a verification that failed.
    package func addFailure(_ rate: TokenRate, now: UInt64) {
        _ = rate.take(from: row.slots[way].failures, now: now)
    }

    /// Counts bytes of held content for this address; `false` when they would be more than `max`.
    /// Give them back with ``giveBack(_:)`` before ``release(now:)``.
    package func take(_ count: Int, max: Int) -> Bool {
        let held = row.slots[way].held.wrappingAdd(count, ordering: .relaxed).newValue
        guard held > max else { return true }
        giveBack(count)
        return false
    }

    /// Gives back bytes that are no longer held.
    package func giveBack(_ count: Int) {
        row.slots[way].held.wrappingSubtract(count, ordering: .relaxed)
    }

    /// Holds the entry once more; `false` when it has the most holders allowed.
    ///
    /// - max: at least 1; `nil` for no limit.
    package func holdAgain(max: Int?) -> Bool { row.holdAgain(way, max: max) }

    /// Ends one hold of the entry.
    package func release(now: UInt64) {
        row.slots[way].usedAt.store(now, ordering: .relaxed)
        row.slots[way].holder.wrappingSubtract(1, ordering: .releasing)
    }
}
