import Expectations
import Testing

@testable import HTTPWire

struct StreamTableTests {
    private final class Stream {}

    @Test func `streams are found by their numbers until they are removed, in any order`() {
        var table = StreamTable<Stream>()
        let streams = (0..<9).map { _ in Stream() }
        for (place, stream) in streams.enumerated() { table.add(stream, as: Int32(place * 2 + 1)) }
        let isInOrder = table.channels.elementsEqual(streams) { $0 === $1 }
        #expect(isInOrder)
        for id: Int32 in [0, 2, 18, 19, -1, .max] { #expect(table[id] == nil) }
        for removed in [4, 0, 8, 3] {
            table.remove(Int32(removed * 2 + 1))
            table.remove(Int32(removed * 2))
            #expect(table[Int32(removed * 2 + 1)] == nil)
        }
        expectEqual(table.count, 5)
        for kept in [1, 2, 5, 6, 7] { #expect(table[Int32(kept * 2 + 1)] === streams[kept]) }
    }
}
