internal import Cryptography
internal import Encodings
internal import Synchronization

/// Challenges that are remembered until they expire: those that were tried, or those that were
/// spent in another start than the one that issued them.
///
/// Like ``SpentChallenges``, but for serial numbers of any start, and it issues none: a table for
/// each start and period, in blocks of neighbours. A table is forgotten as a whole, when the last
/// of its challenges has expired.
///
/// Shared by all event loops. A call takes the lock of one of 64 shards, for some ten nanoseconds
/// or, where a table grows, for a copy of a 64th of the set. Forgetting takes each lock in turn,
/// for a time that depends on the number of tables and not on the number of challenges.
final class RememberedChallenges: Sendable {
    struct Table: Sendable {
        let epoch: UInt64
        let period: UInt64
        /// When the last of its challenges expires, in seconds since 1970.
        var expiry: Int64
        var blocks: SpentBlocks
    }

    /// A mutex in a class of its own, so that an array can hold it.
    final class Shard: Sendable {
        let tables = Mutex<[Table]>([])
    }

    static let shardCount: UInt64 = 64
    /// Seconds between two searches for expired tables.
    private static let lookSeconds: Int64 = 10

    /// The most blocks of neighbours.
    let capacity: Int
    let multiplier = RandomBytes.word() | 1
    let shards = (0..<shardCount).map { _ in Shard() }
    /// Blocks in all tables.
    let blockCount = Atomic<Int>(0)
    /// When expired tables were last searched for. A table that expired before may be forgotten.
    /// Its challenges count as present, also when the clock has stepped back.
    let lookedAt = Atomic<Int64>(-1 << 60)

    init(capacity: Int) { self.capacity = capacity }

    /// The most bytes that such a set takes: each block alone in its table.
    static func bytesMax(capacity: Int) -> Int { capacity * SpentBlocks.bytesMin }

    /// Bytes that the set takes now.
    var bytes: Int { tables { $0.blocks.bytes }.reduce(0, +) }

    /// The most blocks of one table: what a call copies where the table grows.
    var copiedBlocksMax: Int { tables { $0.blocks.count }.max() ?? 0 }

    private func tables(_ number: (Table) -> Int) -> [Int] {
        shards.flatMap { shard in shard.tables.withLock { $0.map(number) } }
    }

    func contains(_ challenge: ChallengeSerial) -> Bool {
        let (period, count) = SpentChallenges.parts(challenge.number)
        return shard(of: count).tables.withLock { tables in
            if isForgotten(challenge) { return true }
            guard let index = Self.index(in: tables, challenge.epoch, period) else { return false }
            return tables[index].blocks.contains(count)
        }
    }

    /// Remembers a challenge: `added` for exactly one of all callers.
    func add(_ challenge: ChallengeSerial) -> SpentBlocks.Addition {
        let (period, count) = SpentChallenges.parts(challenge.number)
        return shard(of: count).tables.withLock { tables in
            if isForgotten(challenge) { return .present }
            if let index = Self.index(in: tables, challenge.epoch, period) {
                let addition = tables[index].blocks.add(count, reserve: reserve)
                if case .added = addition {
                    tables[index].expiry = max(tables[index].expiry, challenge.expiry)
                }
                return addition
            }
            var table = Table(
                epoch: challenge.epoch,
                period: period,
                expiry: challenge.expiry,
                blocks: SpentBlocks(multiplier: multiplier)
            )
            let addition = table.blocks.add(count, reserve: reserve)
            if case .added = addition { tables.append(table) }
            return addition
        }
    }

    func remove(_ challenge: ChallengeSerial) {
        let (period, count) = SpentChallenges.parts(challenge.number)
        shard(of: count).tables.withLock { tables in
            guard let index = Self.index(in: tables, challenge.epoch, period) else { return }
            tables[index].blocks.remove(count)
        }
    }

    /// Forgets expired tables, once every ``lookSeconds``. `now` is 0…2⁶⁰.
    func forgetExpired(now: Int64) {
        let last = lookedAt.load(ordering: .relaxed)
        guard now - last >= Self.lookSeconds,
            lookedAt.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
        else { return }
        // From here on they count as present: a caller that takes a shard's lock after its tables
        // were removed sees the new time.
        for shard in shards {
            let gone = shard.tables.withLock { tables in
                let gone = tables.reduce(0) { $1.expiry <= now ? $0 + $1.blocks.count : $0 }
                if gone > 0 { tables.removeAll { $0.expiry <= now } }
                return gone
            }
            blockCount.wrappingSubtract(gone, ordering: .relaxed)
        }
    }

    private func isForgotten(_ challenge: ChallengeSerial) -> Bool {
        challenge.expiry <= lookedAt.load(ordering: .relaxed)
    }

    static func index(in tables: [Table], _ epoch: UInt64, _ period: UInt64) -> Int? {
        tables.lastIndex { $0.epoch == epoch && $0.period == period }
    }

    private func reserve() -> Bool {
        guard blockCount.wrappingAdd(1, ordering: .relaxed).oldValue < capacity else {
            blockCount.wrappingSubtract(1, ordering: .relaxed)
            return false
        }
        return true
    }

    /// Neighbouring blocks are in different shards.
    private func shard(of count: UInt64) -> Shard {
        shards[Int(count / SpentBlocks.blockCount % Self.shardCount)]
    }
}

// The state for the successor: challenges that were tried, or spent in another start.
extension RememberedChallenges {
    func write(to out: inout ByteWriter) {
        out.number(lookedAt.load(ordering: .relaxed))
        for shard in shards {
            shard.tables.withLock { tables in
                for table in tables {
                    table.blocks.forEachBlock { tag, bits in
                        out.byte(1)
                        out.word(table.epoch)
                        out.word(table.period)
                        out.number(table.expiry)
                        out.word(tag)
                        for word in bits { out.word(word) }
                    }
                }
            }
        }
        out.byte(0)
    }

    /// Reads the state that another process has written. The set must not be in use yet.
    func take(from state: inout ByteReader) throws(ByteReader.Fault) {
        lookedAt.store(min(max(try state.number(), -1 << 60), 1 << 60), ordering: .relaxed)
        while try state.flag() {
            let (epoch, period) = (try state.word(), try state.word())
            let expiry = try state.number()
            let (tag, bits) = try SpentBlocks.block(from: &state)
            let home = shards[Int((tag - 1) % Self.shardCount)]
            let isNew = home.tables.withLock { tables in
                let index = Self.index(in: tables, epoch, period) ?? tables.count
                if index == tables.count {
                    let blocks = SpentBlocks(multiplier: multiplier)
                    let table = Table(epoch: epoch, period: period, expiry: expiry, blocks: blocks)
                    tables.append(table)
                }
                tables[index].expiry = max(tables[index].expiry, expiry)
                return tables[index].blocks.merge(tag, bits)
            }
            if isNew { blockCount.wrappingAdd(1, ordering: .relaxed) }
        }
    }
}
