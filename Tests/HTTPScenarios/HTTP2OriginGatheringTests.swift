import Expectations
import LoopbackKit
import Synchronization
import TestSupport
import Testing

extension Scenarios {
    /// What goes to an origin over HTTP/2 in one write. Each write is a segment of its own on this
    /// host, however late the origin reads it.
    struct HTTP2OriginGatheringTests {
        typealias Server = HTTP2Server
        typealias Place = HTTP2OriginTests.Place

        /// The segments in which an origin gets sixteen requests. They wait for its connection, so
        /// all of them get their streams at once, however long the gateway takes for one.
        private func segmentsOfSixteen() throws -> Int {
            let (greeting, counted) = (Gate(), Gate())
            let segments = Mutex(0)
            let count = 16
            let place = try Place(options: ", connect_timeout: 60s") { connection in
                // The gateway's own greeting, which it sends as soon as it has connected.
                while connection.wire.inbox.isEmpty { try connection.wire.receive() }
                try greeting.pass()
                let before = connection.wire.contentSegmentsReceived
                let server = try Server(connection)
                for number in 0..<count {
                    guard let (_, request) = try server.nextRequest() else { return }
                    expectEqual(request.path, "/\(number)")
                }
                let after = connection.wire.contentSegmentsReceived
                segments.withLock { $0 = after - before }
                counted.open()
                for number in 0..<count { try server.answer(UInt32(2 * number + 1), content: "ok") }
                try connection.awaitEnd()
            }
            defer { place.stop() }
            let client = try place.connect()
            let streams = try (0..<count).map { try client.open(HTTP2Client.get("/\($0)")) }
            // The gateway answers this one, and has read those before it then.
            let fields = [
                (":method", "OPTIONS"), (":scheme", "http"), (":authority", "a.test"),
                (":path", "/"), ("max-forwards", "0"),
            ]
            try expectEqual(client.ask(fields).status, 200)
            greeting.open()
            try counted.pass()
            for id in streams { try expectEqual(client.answer(id).text, "ok") }
            return segments.withLock { $0 }
        }

        @Test func `requests that come together reach the origin in few writes`() throws {
            // The answer to SETTINGS, and the requests; the first of them may go alone. Where the
            // machine has other work, they may come in more rounds of the loop.
            #expect(try eventually(within: 30) { try segmentsOfSixteen() <= 3 })
        }

        @Test func `a head and the content that came with it reach the origin in one write`() throws
        {
            let (ready, counted) = (Gate(), Gate())
            let place = try Place { connection in
                let server = try Server(connection)
                guard let (first, _) = try server.nextRequest() else { return }
                try server.answer(first, content: "ok")
                // What the gateway sends for the first answer has come.
                try ready.pass()
                let before = connection.wire.contentSegmentsReceived
                counted.open()
                guard let (id, request) = try server.nextRequest() else { return }
                expectEqual(connection.wire.contentSegmentsReceived - before, 1)
                try server.answer(id, content: request.text)
                try connection.awaitEnd()
            }
            defer { place.stop() }
            let client = try place.connect()
            try expectEqual(client.ask(HTTP2Client.get()).text, "ok")
            ready.open()
            try counted.pass()
            // Without a length, so that the head does not say whether content follows.
            let id = client.nextStream()
            let block = HTTP2Client.block(HTTP2Client.post())
            let head = HTTP2Client.frame(.headers, HTTP2Client.endsHead, id, block)
            let text = Array("hello".utf8)
            try client.wire.send(
                head + HTTP2Client.frame(.data, HTTP2Client.endsStream, id, text)
            )
            try expectEqual(client.answer(id).text, "hello")
        }

        /// The segments in which a client gets four answers that an origin sends together.
        private func segmentsOfFour() throws -> Int {
            let (asked, counted) = (Gate(), Gate())
            let place = try Place { connection in
                let server = try Server(connection)
                var ids: [UInt32] = []
                while ids.count < 4, let (id, _) = try server.nextRequest() { ids.append(id) }
                asked.open()
                try counted.pass()
                let block = HTTP2Client.block([(":status", "200")])
                let flags = HTTP2Client.endsHead | HTTP2Client.endsStream
                let heads = ids.map { HTTP2Client.frame(.headers, flags, $0, block) }
                try connection.wire.send(Array(heads.joined()))
                try connection.awaitEnd()
            }
            defer { place.stop() }
            let client = try place.connect()
            let streams = try (0..<4).map { _ in try client.open(HTTP2Client.get()) }
            try asked.pass()
            let before = client.wire.contentSegmentsReceived
            counted.open()
            for id in streams { try expectEqual(client.answer(id).status, 200) }
            return client.wire.contentSegmentsReceived - before
        }

        @Test func `of few answers that come together the first goes at once, the others together`()
            throws
        {
            // Where the machine has other work, the others may come in two rounds of the loop.
            #expect(try eventually(within: 30) { try segmentsOfFour() == 2 })
        }
    }
}
