import Expectations
import Testing

@testable import HTTPWire

struct FrameWalkTests {
    private typealias Head = HTTP2FrameWalk.FrameHead

    /// A preface, then frames with a payload that looks like frames.
    private static func session(_ heads: [HTTP2FrameWalk.FrameHead]) -> [UInt8] {
        Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
            + heads.flatMap { head -> [UInt8] in
                [
                    UInt8(head.length >> 16), UInt8(head.length >> 8 & 0xFF),
                    UInt8(head.length & 0xFF),
                ]
                    + [head.type, head.flags, 0x80, 0, 0, UInt8(head.stream)]
                    + Array(repeating: 1, count: head.length)
            }
    }

    private static func walked(_ pieces: [ArraySlice<UInt8>]) -> [HTTP2FrameWalk.FrameHead] {
        var walk = HTTP2FrameWalk()
        var heads: [HTTP2FrameWalk.FrameHead] = []
        for piece in pieces.map(Array.init) {
            var position = 0
            while let head = walk.next(in: piece.span, from: &position) { heads.append(head) }
        }
        return heads
    }

    @Test func `frames are found however the bytes are cut`() {
        let heads = [
            Head(type: 4), Head(type: 1, flags: 4, length: 30, stream: 1),
            Head(type: 0, flags: 1, length: 300, stream: 1), Head(type: 0xFA, length: 9),
            Head(type: 6, length: 8),
        ]
        let bytes = Self.session(heads)
        expectEqual(Self.walked([bytes[...]]), heads)
        expectEqual(Self.walked(bytes.indices.map { bytes[$0...$0] }), heads)
        for cut in bytes.indices {
            expectEqual(Self.walked([bytes[..<cut], bytes[cut...]]), heads)
        }
    }

    @Test func `a head is under way from its first frame to the last byte of its last`() {
        let bytes = Self.session([
            Head(type: 1, length: 2, stream: 1), Head(type: 9, flags: 4, length: 1, stream: 1),
            Head(type: 6, length: 8),
        ])
        var walk = HTTP2FrameWalk()
        let under = bytes.indices.filter { index in
            var position = 0
            let piece = [bytes[index]]
            _ = walk.next(in: piece.span, from: &position)
            return walk.isMidFields
        }
        // The preface and a frame's head; then up to the byte before the last.
        let places = (24 + 8)..<(24 + 11 + 9)
        expectEqual(under, Array(places))
    }

    private typealias Fault = HTTP2FrameWalk.PriorityFault

    /// PRIORITY frames by stream and dependency, and what is wrong with them together.
    private static let priorities: [(frames: [(UInt8, [UInt8])], fault: Fault?)] = [
        ([(5, [0, 0, 0, 3, 5])], nil), ([(5, [0, 0, 0, 5, 0])], .stream(5)),
        ([(5, [0x80, 0, 0, 5, 0])], .stream(5)), ([(5, [5, 0, 0, 0, 5])], nil),
        ([(5, [0, 0, 0, 5])], nil), ([(0, [0, 0, 0, 3, 0])], .connection),
        ([(5, [0, 0, 0, 5, 0]), (7, [0, 0, 0, 5, 0])], .stream(5)),
        ([(5, [0, 0, 0, 5, 0]), (5, [0, 0, 0, 5, 0])], .stream(5)),
        ([(5, [0, 0, 0, 5, 0]), (7, [0, 0, 0, 7, 0])], .connection),
        ([(0, [0, 0, 0, 3, 0]), (7, [0, 0, 0, 7, 0])], .connection),
    ]

    @Test func `wrong PRIORITY frames are found however the bytes are cut`() {
        for (frames, fault) in Self.priorities {
            let bytes: [UInt8] = frames.flatMap { stream, payload -> [UInt8] in
                [0, 0, UInt8(payload.count), 2, 0, 0, 0, 0, stream] + payload
            }
            let cuts = bytes.indices.map { [bytes[..<$0], bytes[$0...]] }
            for pieces in cuts + [bytes.indices.map { bytes[$0...$0] }] {
                var walk = HTTP2FrameWalk(preface: 0)
                for piece in pieces.map(Array.init) {
                    var position = 0
                    while walk.next(in: piece.span, from: &position) != nil {}
                }
                #expect(walk.takePriorityFault() == fault, "\(frames)")
                #expect(walk.takePriorityFault() == nil)
            }
        }
    }
}
