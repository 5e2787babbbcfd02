import Expectations
import Testing

@testable import Tokens

@Suite struct SpentBlocksTests {
    /// What tells the numbers of a table from a set's.
    private struct Twin {
        var blocks = SpentBlocks(multiplier: 0x9E37_79B9_7F4A_7C15)
        var plain: Set<UInt64> = []

        mutating func add(_ number: UInt64) {
            let isNew = plain.insert(number).inserted
            expectEqual(blocks.add(number, reserve: { true }), isNew ? .added : .present)
        }
    }

    @Test func `what was added is in it, and its neighbours are not`() {
        var twin = Twin()
        let numbers: [UInt64] = [0, 447, 448, 449, 1 << 39, 2_239]
        for number in numbers { twin.add(number) }
        for number in twin.plain {
            twin.add(number)
            for other in [number, number &+ 1, number &- 1] {
                expectEqual(twin.blocks.contains(other), twin.plain.contains(other))
            }
        }
    }

    @Test func `it holds a hundred thousand numbers, near to each other and far apart`() {
        var twin = Twin()
        var generator = SystemRandomNumberGenerator()
        for step in UInt64(0)..<50_000 {
            twin.add(step * 3)
            twin.add(UInt64.random(in: 0..<1 << 30, using: &generator))
        }
        #expect(twin.plain.allSatisfy(twin.blocks.contains))
        for number in UInt64(0)..<150_000 {
            expectEqual(twin.blocks.contains(number), twin.plain.contains(number))
        }
        #expect(twin.blocks.bytes <= twin.blocks.count * SpentBlocks.bytesPerBlockMax)
    }

    @Test func `a full row of numbers costs 1.2 bits each, a lonely number one block`() {
        var row = SpentBlocks(multiplier: 3)
        for number in UInt64(0)..<448 * 192 { _ = row.add(number, reserve: { true }) }
        expectEqual(row.count, 192)
        expectEqual(row.bytes, 256 * 64)
        var lonely = SpentBlocks(multiplier: 3)
        for number in UInt64(0)..<192 { _ = lonely.add(number * 448, reserve: { true }) }
        expectEqual(lonely.count, 192)
    }

    @Test func `without room for a block nothing is added, and a block that is there goes on`() {
        var blocks = SpentBlocks(multiplier: 5)
        expectEqual(blocks.add(10, reserve: { true }), .added)
        expectEqual(blocks.add(448, reserve: { false }), .noRoom)
        #expect(!blocks.contains(448))
        expectEqual(blocks.add(11, reserve: { false }), .added)
        expectEqual(blocks.add(11, reserve: { false }), .present)
    }
}
