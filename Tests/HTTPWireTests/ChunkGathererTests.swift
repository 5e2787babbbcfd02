import Expectations
import Testing

@testable import HTTPWire

@Suite struct ChunkGathererTests {
    /// What stands behind `before` when these pieces came in one read.
    private func gathered(_ pieces: [String], behind before: String = "") -> String {
        var out = Array(before.utf8)
        var chunk = ChunkGatherer()
        for piece in pieces { chunk.add(Array(piece.utf8).span, to: &out) }
        chunk.finish(in: &out)
        return String(decoding: out, as: UTF8.self)
    }

    @Test func `no content makes no chunk, which would be an end`() {
        expectEqual(gathered([]), "")
        expectEqual(gathered([], behind: "head"), "head")
    }

    @Test func `one piece stays as it is`() {
        expectEqual(gathered(["0123456789abcdef"]), "10\r\n0123456789abcdef\r\n")
    }

    @Test func `many pieces make one chunk, behind what stood there`() {
        expectEqual(gathered(["a", "b", "c"], behind: "1\r\nx\r\n"), "1\r\nx\r\n3\r\nabc\r\n")
        let pieces = Array(repeating: "a", count: 300)
        expectEqual(gathered(pieces), "12c\r\n" + String(repeating: "a", count: 300) + "\r\n")
    }
}
