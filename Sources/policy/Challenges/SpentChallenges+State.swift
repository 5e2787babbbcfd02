internal import ByteCoding
internal import Synchronization

// What the next process must know, so that nothing that was spent here is good there.
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

    /// Takes what another process has written, and goes on with its numbers. For a set that nobody
    /// uses yet. What was spent is kept even where there is less room here.
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
    /// A block as bytes say it.
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
