internal import Cryptography
internal import Encodings
internal import Synchronization

/// Which challenges of one purpose were spent. A challenge that is issued and never spent takes no
/// memory.
///
/// A serial number has its period above and a count below. To forget spent numbers, the set closes
/// their period: from then on it refuses every number of the period, for ever. So the clock decides
/// when a period is closed, and never makes a spent number fresh.
///
/// Shared by all event loops. Spending takes the lock of one of 64 shards, for some ten nanoseconds
/// or, where a table grows, for a copy of a 64th of the set.
final class SpentChallenges: Sendable {
    /// Bits of a serial number that count within its period.
    private static let countBits: UInt64 = 40
    private static let countMask: UInt64 = 1 << countBits - 1
    static let shardCount: UInt64 = 64

    struct Table: Sendable {
        let period: UInt64
        var blocks: SpentBlocks
    }

    /// A mutex in a class of its own, so that an array can hold it.
    final class Shard: Sendable {
        /// One table for each period, in the order of their first use.
        let tables = Mutex<[Table]>([])
    }

    /// The most blocks, which is also the number of spent challenges that are remembered at least,
    /// however far apart their serial numbers.
    let capacity: Int
    /// Seconds that a challenge is good.
    let lifetime: Int64
    private let periodLength: Int64
    let multiplier = RandomBytes.word() | 1
    let next = Atomic<UInt64>(0)
    /// When the period of ``next`` began.
    let periodStart = Atomic<Int64>(-1 << 60)
    /// The oldest open period. Only grows.
    let oldest = Atomic<UInt64>(0)
    /// Blocks in all tables.
    let blockCount = Atomic<Int>(0)
    let calendar: Mutex<ChallengeCalendar>
    let shards: [Shard]
    private let rule: ChallengeCalendar

    init(capacity: Int, lifetime: Int64) {
        precondition(capacity > 0, "SpentChallenges: room for one at least")
        precondition(lifetime > 0 && lifetime <= 1 << 32, "SpentChallenges: lifetime out of range")
        self.capacity = capacity
        self.lifetime = lifetime
        rule = ChallengeCalendar(lifetime: lifetime)
        periodLength = rule.length
        calendar = Mutex(rule)
        shards = (0..<Self.shardCount).map { _ in Shard() }
    }

    /// The count of numbers issued so far.
    var issued: UInt64 {
        calendar.withLock { $0.issuedBefore &+ next.load(ordering: .relaxed) & Self.countMask }
    }

    /// Bytes that the spent ones take now.
    var bytes: Int {
        shards.reduce(0) { sum, shard in
            sum + shard.tables.withLock { $0.reduce(0) { $0 + $1.blocks.bytes } }
        }
    }

    /// The most bytes that the spent ones of a capacity take: its blocks, and an almost empty table
    /// in each shard and period.
    static func bytesMax(capacity: Int) -> Int {
        capacity * SpentBlocks.bytesPerBlockMax
            + Int(shardCount) * ChallengeCalendar.periodsMax * SpentBlocks.bytesMin
    }

    // MARK: Issuing

    /// Takes the next number. `now` is seconds since 1970, 0…2⁶⁰.
    func issue(now: Int64) -> UInt64 {
        if !isInPeriod(now) { beginPeriod(now) }
        return next.wrappingAdd(1, ordering: .relaxed).oldValue
    }

    /// Event loops read the clock once an iteration, so the clock of one may be a little later than
    /// that of another. A time before the period's start begins another period only when it is
    /// earlier by a whole period.
    private func isInPeriod(_ now: Int64) -> Bool {
        let start = periodStart.load(ordering: .acquiring)
        return now - start < periodLength && start - now <= periodLength
            && next.load(ordering: .relaxed) & Self.countMask < 1 << (Self.countBits - 1)
    }

    private func beginPeriod(_ now: Int64) {
        calendar.withLock { calendar in
            // Another event loop may have begun it meanwhile.
            guard !isInPeriod(now) else { return }
            let current = next.load(ordering: .relaxed) >> Self.countBits
            let number = calendar.oldest == nil ? 0 : current &+ 1
            let last = next.exchange(number << Self.countBits, ordering: .relaxed)
            calendar.issuedBefore &+= last & Self.countMask
            periodStart.store(now, ordering: .releasing)
            if calendar.begin(number, now: now) { forget(before: calendar.oldest ?? number) }
        }
    }

    /// Forgets expired periods although nothing is issued. Called when there is no room.
    private func close(now: Int64) {
        calendar.withLock { calendar in
            if calendar.close(now: now), let oldest = calendar.oldest { forget(before: oldest) }
        }
    }

    /// Closes the periods before this one. It first refuses their numbers, then removes their bits:
    /// a caller that takes a shard's lock after its tables were removed sees the new ``oldest``.
    private func forget(before period: UInt64) {
        oldest.store(period, ordering: .relaxed)
        for shard in shards {
            shard.tables.withLock { tables in
                var gone = 0
                tables.removeAll { table in
                    guard table.period < period else { return false }
                    gone += table.blocks.count
                    return true
                }
                blockCount.wrappingSubtract(gone, ordering: .relaxed)
            }
        }
    }

    // MARK: Spending

    /// Whether a challenge with this expiry is no longer good.
    func isOver(_ expiry: Int64, now: Int64) -> Bool { rule.isOver(expiry, now: now) }

    /// Whether the number's period was closed, or the number never issued.
    func isClosed(_ number: UInt64) -> Bool {
        number >> Self.countBits < oldest.load(ordering: .relaxed)
            || number >= next.load(ordering: .relaxed)
    }

    /// Whether the number was spent, or can't be told from one that was.
    func isSpent(_ number: UInt64) -> Bool {
        let (period, count) = Self.parts(number)
        return shard(of: count).tables.withLock { tables in
            guard !isClosed(number) else { return true }
            guard let table = tables.lastIndex(where: { $0.period == period }) else { return false }
            return tables[table].blocks.contains(count)
        }
    }

    /// Spends the number: `spent` for exactly one of all callers, and never for a closed number.
    func spend(_ number: UInt64) -> ChallengeIssuer.Spending {
        let (period, count) = Self.parts(number)
        return shard(of: count).tables.withLock { tables in
            guard !isClosed(number) else { return .spentBefore }
            let index: Int
            if let found = tables.lastIndex(where: { $0.period == period }) {
                index = found
            } else {
                index = tables.count
                tables.append(Table(period: period, blocks: SpentBlocks(multiplier: multiplier)))
            }
            switch tables[index].blocks.add(count, reserve: reserve) {
            case .added: return .spent
            case .present: return .spentBefore
            case .noRoom: return .noRoom
            }
        }
    }

    /// Makes a number fresh again after its only user has not used it.
    func takeBack(_ number: UInt64) {
        let (period, count) = Self.parts(number)
        shard(of: count).tables.withLock { tables in
            guard let table = tables.lastIndex(where: { $0.period == period }) else { return }
            tables[table].blocks.remove(count)
        }
    }

    /// Makes room if there is none and something has expired. `now` is 0…2⁶⁰.
    func makeRoom(now: Int64) {
        if blockCount.load(ordering: .relaxed) >= capacity { close(now: now) }
    }

    private func reserve() -> Bool {
        guard blockCount.wrappingAdd(1, ordering: .relaxed).oldValue < capacity else {
            blockCount.wrappingSubtract(1, ordering: .relaxed)
            return false
        }
        return true
    }

    /// The period of a serial number, and the count within it.
    static func parts(_ number: UInt64) -> (period: UInt64, count: UInt64) {
        (number >> countBits, number & countMask)
    }

    /// Neighbouring blocks are in different shards.
    private func shard(of count: UInt64) -> Shard {
        shards[Int(count / SpentBlocks.blockCount % Self.shardCount)]
    }
}

/// A set of numbers: a hash table of blocks of 448 neighbours, one bit for each.
///
/// Clients spend their newest challenge, so spent numbers are neighbours. A full block costs 1.2
/// bits a number. A number alone in its block costs the whole block.
///
/// The hash multiplies by a secret word, so that a client can't choose numbers whose
/// blocks collide.
struct SpentBlocks: Sendable {
    /// Numbers of one block.
    static let blockCount: UInt64 = 448
    /// Words of a block's bits.
    static let wordCount = 7
    /// Bytes of one block: a cache line.
    static let blockBytes = MemoryLayout<Block>.stride
    /// The most bytes of the table for each block in it: just grown, it is 3/8 full.
    static let bytesPerBlockMax = blockBytes * 8 / 3

    private struct Block {
        /// One more than the block's number; 0 in an empty place.
        var tag: UInt64 = 0
        var bits = InlineArray<7, UInt64>(repeating: 0)
    }

    private static let placesMin = 4
    /// Bytes of a table with one block.
    static let bytesMin = placesMin * blockBytes

    /// Open addressing with linear probing; a power of two, at most 3/4 full.
    private var places = [Block](repeating: Block(), count: placesMin)
    /// Blocks in the table.
    private(set) var count = 0
    private let multiplier: UInt64

    /// - `multiplier`: odd and random.
    init(multiplier: UInt64) { self.multiplier = multiplier }

    /// Bytes that the table takes.
    var bytes: Int { places.count * Self.blockBytes }

    func contains(_ number: UInt64) -> Bool {
        let (tag, word, bit) = Self.parts(number)
        let place = place(of: tag)
        return places[place].tag == tag && places[place].bits[word] & bit != 0
    }

    /// The result of adding a number.
    enum Addition { case added, present, noRoom }

    /// Adds a number.
    ///
    /// - `reserve`: called when one more block is needed; says whether there may be one.
    mutating func add(_ number: UInt64, reserve: () -> Bool) -> Addition {
        let (tag, word, bit) = Self.parts(number)
        var place = place(of: tag)
        if places[place].tag != tag {
            guard reserve() else { return .noRoom }
            if (count + 1) * 4 > places.count * 3 {
                grow()
                place = self.place(of: tag)
            }
            places[place].tag = tag
            count += 1
        }
        guard places[place].bits[word] & bit == 0 else { return .present }
        places[place].bits[word] |= bit
        return .added
    }

    /// Removes a number. Its block stays.
    mutating func remove(_ number: UInt64) {
        let (tag, word, bit) = Self.parts(number)
        let place = place(of: tag)
        if places[place].tag == tag { places[place].bits[word] &= ~bit }
    }

    // MARK: As bytes

    /// Calls the closure with the tag and the bits of each block.
    func forEachBlock(_ body: (UInt64, [UInt64]) -> Void) {
        for block in places where block.tag != 0 {
            body(block.tag, block.bits.indices.map { block.bits[$0] })
        }
    }

    /// Adds all bits of a block from ``forEachBlock(_:)``.
    ///
    /// - Returns: whether the block is new.
    mutating func merge(_ tag: UInt64, _ bits: [UInt64]) -> Bool {
        precondition(tag > 0 && bits.count == Self.wordCount, "SpentBlocks: no block")
        if (count + 1) * 4 > places.count * 3 { grow() }
        let place = place(of: tag)
        let isNew = places[place].tag == 0
        if isNew {
            places[place].tag = tag
            count += 1
        }
        for word in 0..<Self.wordCount { places[place].bits[word] |= bits[word] }
        return isNew
    }

    /// Where the block of this tag is, or the empty place where it would be.
    private func place(of tag: UInt64) -> Int {
        let mask = places.count - 1
        // The upper bits of the product depend on all bits of the tag.
        var place = Int((tag &* multiplier) >> 32) & mask
        // A table is never full, so that there is an empty place to stop at.
        while places[place].tag != tag, places[place].tag != 0 { place = (place + 1) & mask }
        return place
    }

    private mutating func grow() {
        var old = [Block](repeating: Block(), count: places.count * 2)
        swap(&old, &places)
        for block in old where block.tag != 0 { places[place(of: block.tag)] = block }
    }

    private static func parts(_ number: UInt64) -> (tag: UInt64, word: Int, bit: UInt64) {
        let inside = number % blockCount
        return (number / blockCount + 1, Int(inside / 64), 1 << (inside % 64))
    }
}

// The state for the successor, so that it refuses every challenge that was spent here.
extension SpentChallenges {
    func write(to out: inout ByteWriter) {
        calendar.withLock { calendar in
            out.word(next.load(ordering: .relaxed))
            out.number(periodStart.load(ordering: .acquiring))
            out.word(oldest.load(ordering: .relaxed))
            calendar.write(to: &out)
        }
        for shard in shards {
            shard.tables.withLock { tables in
                for table in tables {
                    table.blocks.forEachBlock { tag, bits in
                        out.byte(1)
                        out.word(table.period)
                        out.word(tag)
                        for word in bits { out.word(word) }
                    }
                }
            }
        }
        out.byte(0)
    }

    /// Reads the state that another process has written, and continues its numbers. The set must
    /// not be in use yet. Every spent number is kept, even where there is less room here.
    func take(from state: inout ByteReader) throws(ByteReader.Fault) {
        next.store(try state.word(), ordering: .relaxed)
        let start = try state.number()
        periodStart.store(min(max(start, -1 << 60), 1 << 60), ordering: .releasing)
        oldest.store(try state.word(), ordering: .relaxed)
        var calendar = ChallengeCalendar(lifetime: lifetime)
        try calendar.take(from: &state)
        self.calendar.withLock { $0 = calendar }
        while try state.flag() {
            let period = try state.word()
            let (tag, bits) = try SpentBlocks.block(from: &state)
            let home = shards[Int((tag - 1) % Self.shardCount)]
            let isNew = home.tables.withLock { tables in
                let index = tables.lastIndex { $0.period == period } ?? tables.count
                if index == tables.count {
                    let blocks = SpentBlocks(multiplier: multiplier)
                    tables.append(Table(period: period, blocks: blocks))
                }
                return tables[index].blocks.merge(tag, bits)
            }
            if isNew { blockCount.wrappingAdd(1, ordering: .relaxed) }
        }
    }
}

extension SpentBlocks {
    /// Reads a block from its bytes.
    static func block(
        from state: inout ByteReader
    ) throws(ByteReader.Fault) -> (tag: UInt64, bits: [UInt64]) {
        let tag = try state.word()
        guard tag > 0 else { throw ByteReader.Fault() }
        var bits: [UInt64] = []
        for _ in 0..<wordCount { bits.append(try state.word()) }
        return (tag, bits)
    }
}
