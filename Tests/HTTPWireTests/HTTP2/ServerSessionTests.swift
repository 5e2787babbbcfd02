import Expectations
import Testing

@testable import HTTPWire

/// The server's end of a connection against a scripted client: bytes in, frames out.
struct ServerSessionTests {
    private typealias Frame = ClientSessionTests.Frame

    /// A session whose client asks on so many streams at once. Each stream takes a mebibyte.
    private static func asked(
        streams: Int,
        connectionWindow: UInt32
    ) throws -> (session: HTTP2Session, channels: [HTTP2Channel]) {
        let session = try HTTP2Session(HTTP2Limits(), nonce: 1, memory: HeadMemory())
        var bytes = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        bytes += Frame.make(4, 0, 0, [0, 4] + Frame.number(1 << 20))
        bytes += Frame.make(8, 0, 0, Frame.number(connectionWindow - 65_535))
        let request = [
            (":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a.test"),
        ]
        let flags = Frame.endsHead | Frame.endsStream
        for place in 0..<streams {
            bytes += Frame.make(1, flags, Int32(place * 2 + 1), Frame.block(request))
        }
        try session.receive(bytes.span, now: 1_000)
        var channels: [HTTP2Channel] = []
        while let channel = session.nextNews() {
            guard session.takeHead(of: channel) != nil else { continue }
            channels.append(channel)
        }
        try #require(channels.count == streams)
        return (session, channels)
    }

    /// Answers with content that has not ended.
    private static func answer(
        _ session: HTTP2Session,
        _ channels: [HTTP2Channel],
        with count: Int
    ) {
        let head = Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
        let content = [UInt8](repeating: 7, count: count)
        for channel in channels {
            let isTaken = session.respond(channel, head.span, hasContent: true)
            #expect(isTaken)
            session.append(content.span, to: channel)
        }
    }

    @Test func `what is taken at once is bounded, however far the windows are open`() throws {
        let (session, channels) = try Self.asked(streams: 4, connectionWindow: 1 << 20)
        Self.answer(session, channels, with: 200_000)
        var out: [UInt8] = []
        // The last frame may begin just below the bound.
        let most = (64 << 10) + 16_384 + 9
        repeat {
            out = []
            try session.send(into: &out, atMost: 64 << 10, now: 1_000)
            #expect(out.count < most)
        } while !out.isEmpty
        expectEqual(session.unsentBytes, 0)
    }

    @Test func `streams send in turn where the connection's window is small`() throws {
        // Four frames of content.
        let (session, channels) = try Self.asked(streams: 3, connectionWindow: 65_536)
        Self.answer(session, channels, with: 65_536)
        var out: [UInt8] = []
        try session.send(into: &out, atMost: 1 << 20, now: 1_000)
        var walk = HTTP2FrameWalk(preface: 0)
        var position = 0
        var served: [UInt32] = []
        while let frame = walk.next(in: out.span, from: &position) {
            if frame.type == 0 { served.append(frame.stream) }
        }
        expectEqual(served, [1, 3, 5, 1])
    }

    /// As Firefox does, which opens the window of each stream that it asks on.
    @Test func `windows may open for responses without content`() throws {
        let (session, _) = try Self.asked(streams: 0, connectionWindow: 65_536)
        let head = Array("HTTP/1.1 204 No Content\r\n\r\n".utf8)
        let request = [
            (":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a.test"),
        ]
        for place in 0..<2_000 {
            let id = Int32(place * 2 + 1)
            var bytes = Frame.make(1, Frame.endsHead, id, Frame.block(request))
            bytes += Frame.make(8, 0, id, Frame.number(1_000))
            bytes += Frame.make(0, Frame.endsStream, id)
            try session.receive(bytes.span, now: 1_000)
            while let channel = session.nextNews() {
                guard session.takeHead(of: channel) != nil else { continue }
                session.respond(channel, head.span, hasContent: false)
            }
            session.forgetHeads()
            var out: [UInt8] = []
            try session.send(into: &out, atMost: 1 << 20, now: 1_000)
        }
        expectEqual(session.openCount, 0)
    }
}
