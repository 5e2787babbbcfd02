internal import ByteCoding
internal import Synchronization

// What the next process must know of challenges that were tried, or spent in another start.
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

    /// Takes what another process has written. For a set that nobody uses yet.
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
