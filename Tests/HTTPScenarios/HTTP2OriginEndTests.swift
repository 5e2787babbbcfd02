import EventLoops
import Expectations
import Foundation
import LoopbackKit
import Synchronization
import Testing

extension Scenarios {
    /// How streams end on a connection to an origin over HTTP/2, and what that does to the others.
    struct HTTP2OriginEndTests {
        typealias Server = HTTP2Server
        typealias Place = HTTP2OriginTests.Place

        /// How many events the event loop has served.
        private static func events(_ place: Place) throws -> Double {
            let lines = try place.gateway.askOperators("/metrics").text.split(separator: "\n")
            let line = lines.first { $0.hasPrefix("portcullis_event_loop_iteration_events_sum ") }
            return try #require(line?.split(separator: " ").last.flatMap { Double($0) })
        }

        /// As servers end connections after so many requests, or before they end themselves.
        @Test func `a connection that its server has ended rests while its client is slow`() throws
        {
            let ended = Gate()
            let place = try Place(more: "admin: { address: 127.0.0.1:0 }") { connection in
                let server = try Server(connection)
                guard let (id, _) = try server.nextRequest() else { return }
                try server.goAway(id)
                try server.sendHead(id, [(":status", "200")])
                let content = Array(repeating: UInt8(7), count: 60_000)
                try server.sendContent(content, on: id, ends: true)
                connection.wire.finishSending()
                ended.open()
                try connection.awaitEnd()
            }
            defer { place.stop() }
            let slow = try HTTP2Client(try place.gateway.connect(), settings: [(4, 10)])
            slow.opensWindows = false
            let id = try slow.open(HTTP2Client.get())
            try slow.readUntil { slow.soFar(id).content.count == 10 }
            try ended.pass()
            // Nothing comes on a connection without a request: this is a pause.
            let idle = try place.gateway.connect()
            #expect(!idle.isReadable(within: 200))
            let before = try Self.events(place)
            #expect(!idle.isReadable(within: 300))
            #expect(try Self.events(place) - before < 1_000)
            slow.opensWindows = true
            try slow.openWindow(id, by: 60_000)
            let answer = try slow.answer(id)
            expectEqual(answer.content, Array(repeating: 7, count: 60_000))
        }

        /// As servers do that have too many connections.
        @Test func `a server whose first word is GOAWAY took no connection`() throws {
            let place = try Place { connection in
                let goAway = HTTP2Client.bytes(0) + HTTP2Client.bytes(0)
                let frames = HTTP2Client.frame(.settings, 0, 0)
                try connection.wire.send(frames + HTTP2Client.frame(.goAway, 0, 0, goAway))
                try connection.awaitEnd()
            }
            defer { place.stop() }
            let answer = try place.connect().ask(HTTP2Client.get())
            expectEqual(answer.status, 502)
            #expect(answer.text.contains("origin-unreachable"))
            // That of the request, and a trial or two: there is one a second.
            #expect(place.origin.connections.count <= 3)
        }

        /// Servers of gRPC end a connection on which they are pinged while they send nothing.
        @Test func `a server is not pinged because a client reads slowly`() throws {
            let pings = Mutex(0)
            let timeouts = "timeouts: { response_idle: 5s, response_minimum_rate: 0B/s }"
            let place = try Place(more: timeouts) { connection in
                let server = try Server(connection)
                guard let (id, _) = try server.nextRequest() else { return }
                try server.sendHead(id, [(":status", "200")])
                let content = Array(repeating: UInt8(7), count: 60_000)
                try server.sendContent(content, on: id, ends: true)
                guard let (last, _) = try server.nextRequest() else { return }
                pings.withLock { $0 = server.pings }
                try server.answer(last, content: "ok")
                try connection.awaitEnd()
            }
            defer { place.stop() }
            let slow = try HTTP2Client(try place.gateway.connect(), settings: [(4, 10)])
            slow.opensWindows = false
            let id = try slow.open(HTTP2Client.get())
            let idle = try place.gateway.connect()
            for round in 1...20 {
                try slow.readUntil { slow.soFar(id).content.count == 10 * round }
                // Nothing comes on a connection without a request: this is a pause.
                #expect(!idle.isReadable(within: 300))
                try slow.openWindow(id, by: 10)
            }
            try expectEqual(place.connect().ask(HTTP2Client.get()).text, "ok")
            expectEqual(pings.withLock { $0 }, 0)
            expectEqual(place.origin.connections.count, 1)
        }

        /// The upload finds its stream reset, and reads what the server has sent beside it.
        @Test func `an upload whose stream has ended takes no other request's answer away`() throws
        {
            let (arrived, answer, answered) = (Gate(), Gate(), Gate())
            let place = try Place(options: ", first_byte_timeout: 20s") { connection in
                let server = try Server(connection)
                while let (id, request) = try server.nextHead() {
                    switch request.path {
                    case "/upload":
                        try server.sendHead(id, [(":status", "200")])
                        let content = Array(repeating: UInt8(7), count: 60_000)
                        try server.sendContent(content, on: id, ends: false)
                        try server.reset(id, 8)
                    case "/late":
                        arrived.open()
                        try answer.pass()
                        try server.answer(id, content: "late")
                        try connection.wire.awaitTaken()
                        answered.open()
                    default: try server.answer(id, content: "ok")
                    }
                }
            }
            defer { place.stop() }
            let door = try LoopDoor(place.gateway, host: 2)
            let upload = try HTTP2Client(try place.gateway.connect(), settings: [(4, 10)])
            upload.opensWindows = false
            let id = try upload.open(HTTP2Client.post("/upload"), ends: false)
            try upload.readUntil { upload.soFar(id).content.count == 10 }
            let other = try place.connect()
            // The reset was sent before this answer.
            try expectEqual(other.ask(HTTP2Client.get()).text, "ok")
            let late = try other.open(HTTP2Client.get("/late"))
            try arrived.pass()
            try door.shut()
            try upload.send([1], on: id, ends: false)
            try upload.wire.awaitTaken()
            answer.open()
            try answered.pass()
            door.open()
            try expectEqual(other.answer(late).text, "late")
            expectEqual(place.origin.connections.count, 1)
            door.remove()
        }

        /// The server answers an upload whose bytes wait for it, and closes without reading them:
        /// both come while the event loop stands.
        @Test func `an answer that came before its connection broke reaches the client`() throws {
            let (asked, answer) = (Gate(), Gate())
            let place = try Place { connection in
                let server = try Server(connection, settings: [(4, 1 << 30)])
                guard let (id, _) = try server.nextHead() else { return }
                try server.openWindow(0, by: 1 << 30)
                asked.open()
                try answer.pass()
                try server.answer(id, 413, content: "no")
                try connection.wire.awaitTaken()
            }
            defer { place.stop() }
            let door = try LoopDoor(place.gateway, host: 2)
            let client = try place.gateway.connect()
            let content = [UInt8](repeating: 7, count: 64 << 20)
            let length = "Content-Length: \(content.count)"
            try client.send("POST / HTTP/1.1\r\nHost: a\r\n\(length)\r\n\r\n")
            #expect(try client.sendUntilStalled(content, milliseconds: 300) < content.count)
            // On a busy machine it stalls before the server has the request.
            try asked.pass()
            try door.shut()
            answer.open()
            #expect(place.origin.wait { $0.first?.isOpen == false })
            door.open()
            try expectEqual(client.readFinalResponse(to: "POST").status, 413)
            door.remove()
        }

        /// Under TLS a read brings one record, of at most 16 KiB.
        @Test func `an answer longer than a read comes whole, though its connection broke`() throws
        {
            let made = try TestCertificate.made.get()
            let certificate = ServerCertificate(chain: made.certificate, key: made.key)
            let tls = try TLSContext(
                showing: [certificate],
                terms: TLSTerms(protocols: [TLSContext.http2])
            )
            let (asked, answer) = (Gate(), Gate())
            let options = ", tls: { ca: \(made.certificate) }"
            let place = try Place(tls: tls, options: options) { connection in
                let server = try Server(connection, settings: [(4, 1 << 30)])
                guard let (id, _) = try server.nextHead() else { return }
                try server.openWindow(0, by: 1 << 30)
                asked.open()
                try answer.pass()
                try server.answer(id, 413, content: String(repeating: "n", count: 48_000))
                try connection.wire.awaitTaken()
            }
            defer { place.stop() }
            let door = try LoopDoor(place.gateway, host: 2)
            let client = try place.gateway.connect()
            let content = [UInt8](repeating: 7, count: 64 << 20)
            let length = "Content-Length: \(content.count)"
            try client.send("POST / HTTP/1.1\r\nHost: a\r\n\(length)\r\n\r\n")
            #expect(try client.sendUntilStalled(content, milliseconds: 300) < content.count)
            // On a busy machine it stalls before the server has the request.
            try asked.pass()
            try door.shut()
            answer.open()
            #expect(place.origin.wait { $0.first?.isOpen == false })
            door.open()
            let response = try client.readFinalResponse(to: "POST")
            expectEqual(response.status, 413)
            expectEqual(response.text.utf8.count, 48_000)
            door.remove()
        }

        @Test func `a client that goes away cancels its request and no other`() throws {
            let cancelled = Gate()
            let place = try Place { connection in
                let server = try Server(connection)
                while let (id, request) = try server.nextHead() {
                    guard request.path == "/stream" else {
                        try server.answer(id, content: "ok")
                        continue
                    }
                    try server.sendHead(id, [(":status", "200")])
                    try server.send(.data, on: id, [1])
                    let reset = try server.read(id) { $0.reset != nil }
                    expectEqual(reset.reset, 8)
                    #expect(!reset.isComplete)
                    cancelled.open()
                }
            }
            defer { place.stop() }
            let client = try place.connect()
            let id = try client.open(HTTP2Client.post("/stream"), ends: false)
            try client.readUntil { client.soFar(id).content.count == 1 }
            try client.send(.reset, on: id, HTTP2Client.bytes(8))
            try cancelled.pass()
            try expectEqual(client.ask(HTTP2Client.get()).text, "ok")
            expectEqual(place.origin.connections.count, 1)
        }

        /// As nginx does for a field of more than 8 KiB: ENHANCE_YOUR_CALM (RFC 9113 §7).
        @Test func `a large head that makes its server end the connection ends no other request`()
            throws
        {
            let (arrived, ended) = (Gate(), Gate())
            let place = try Place { connection in
                let server = try Server(connection)
                while let (id, request) = try server.nextHead() {
                    if request.path == "/large" {
                        try server.goAway(id, 11)
                        return ended.open()
                    }
                    arrived.open()
                    try ended.pass()
                    try server.answer(id, content: "ok")
                }
            }
            defer { place.stop() }
            let client = try place.connect()
            let id = try client.open(HTTP2Client.get("/usual"))
            try arrived.pass()
            let field = ("x-large", String(repeating: "~", count: 9_000))
            try expectEqual(client.ask(HTTP2Client.get("/large", [field])).status, 502)
            try expectEqual(client.answer(id).text, "ok")
        }

        /// Over HTTP/1.1 such a request is the last on its connection.
        @Test func `content of a method that usually has none leaves the connection to others`()
            throws
        {
            let place = try Place()
            defer { place.stop() }
            let client = try place.connect()
            let fields = HTTP2Client.get("/", [("content-length", "1")])
            for _ in 0..<3 { try expectEqual(client.ask(fields, [1]).text, "ok") }
            expectEqual(place.origin.connections.count, 1)
        }

        @Test func `a connection that a request has authenticated takes no other, however it ends`()
            throws
        {
            let cancelled = Gate()
            let place = try Place { connection in
                let server = try Server(connection)
                while let (id, request) = try server.nextHead() {
                    guard request.path == "/stream" else {
                        try server.answer(id, content: "\(connection.number)")
                        continue
                    }
                    try server.sendHead(id, [(":status", "200")])
                    try server.send(.data, on: id, [1])
                    _ = try server.read(id) { $0.reset != nil }
                    cancelled.open()
                }
            }
            defer { place.stop() }
            let client = try place.connect()
            let proof = ("authorization", "NTLM TlRMTVNTUAAB")
            let id = try client.open(HTTP2Client.get("/stream", [proof]))
            try client.readUntil { client.soFar(id).content.count == 1 }
            try client.send(.reset, on: id, HTTP2Client.bytes(8))
            try cancelled.pass()
            try expectEqual(client.ask(HTTP2Client.get()).text, "1")
        }
    }
}
