import Expectations
import Foundation
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// Clients of HTTP/2 that ask for much at once and take nothing.
    struct HTTP2StallTests {
        private static let calm: UInt32 = 0xB
        private static let metrics = "admin: { address: 127.0.0.1:0 }"

        /// Bytes of responses that wait for clients.
        private static func unsent(_ bench: Bench) throws -> Int {
            let lines = try bench.gateway.askOperators("/metrics").text.split(separator: "\n")
            let line = lines.first { $0.hasPrefix("portcullis_http2_unsent_bytes ") }
            return try #require(line?.split(separator: " ").last.flatMap { Int($0) })
        }

        /// Answers with a mebibyte.
        private static let large: TestOrigin.Script = { connection in
            while try connection.nextRequest() != nil { try connection.wire.send(response) }
        }
        private static let response =
            Array("HTTP/1.1 200 OK\r\nContent-Length: \(1 << 20)\r\n\r\n".utf8)
            + [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)

        /// Opens streams whose windows are closed, and reads until each has its response's head or
        /// was reset.
        private static func stall(_ client: HTTP2Client, streams: Int) throws -> [UInt32] {
            let ids = try (0..<streams).map { _ in try client.open(HTTP2Client.get()) }
            try client.readUntil {
                ids.allSatisfy { client.soFar($0).status == 200 || client.soFar($0).reset != nil }
            }
            return ids
        }

        @Test func `streams with closed windows stop their origins before they take much memory`()
            throws
        {
            let bench = try Bench(http2: true, more: Self.metrics, script: Self.large)
            defer { bench.stop() }
            let (connections, streams) = (5, 40)
            let clients = try (0..<connections).map { _ in
                let client = try bench.connectHTTP2(settings: [(4, 0)])
                let ids = try Self.stall(client, streams: streams)
                #expect(ids.allSatisfy { client.soFar($0).reset == nil })
                return client
            }
            let unsent = try Self.unsent(bench)
            let most = connections * streams * 16 << 10
            #expect((1...most).contains(unsent))
            // What waited is given back with its connection. A reset: one that has only sent its
            // end still gets its responses, for a minute here (`timeouts.response_idle`).
            for client in clients { client.wire.reset() }
            #expect(try eventually { try Self.unsent(bench) == 0 })
        }

        @Test func `what waits for all clients together is bounded, and others are served`() throws
        {
            let bench = try Bench(
                http2: true,
                more: "limits: { http2: { unsent_total: 1MiB } }\n" + Self.metrics,
                script: Self.large
            )
            defer { bench.stop() }
            // A busy gateway may read only 4 KiB of each: together still more than the limit. None
            // of the connections can exceed it alone, at 16 KiB of each, so one keeps what waits.
            let stalled = try (0..<16).map { _ in
                let client = try bench.connectHTTP2(settings: [(4, 0)])
                return (client, try Self.stall(client, streams: 20))
            }
            func resets(pongs: Int) throws -> [UInt32?] {
                for (client, _) in stalled {
                    try client.send(.ping, [UInt8](repeating: 0, count: 8))
                    try client.readUntil { client.pongs == pongs }
                }
                return stalled.flatMap { client, ids in ids.map { client.soFar($0).reset } }
            }
            // Later a response that is taken slowly may need all the room.
            #expect(try resets(pongs: 1).contains(nil))
            let good = try bench.connectHTTP2(settings: [(4, 2 << 20)])
            try good.openWindow(0, by: 2 << 20)
            try expectEqual(good.ask(HTTP2Client.get()).content.count, 1 << 20)
            #expect(try Self.unsent(bench) <= 1 << 20)
            #expect(try resets(pongs: 2).contains(Self.calm))
        }

        @Test func `a large response comes whole through small windows`() throws {
            let bench = try Bench(http2: true, script: Self.large)
            defer { bench.stop() }
            let client = try bench.connectHTTP2(settings: [(4, 1000)])
            let ids = try (0..<3).map { _ in try client.open(HTTP2Client.get()) }
            for id in ids { try client.openWindow(id, by: 2 << 20) }
            try client.openWindow(0, by: 4 << 20)
            for id in ids { try expectEqual(client.answer(id).content.count, 1 << 20) }
        }

        /// The window opens, and the origin sends more before the stream learns that all was sent.
        @Test func `a stream that stalls again at once has to be read in time, too`() throws {
            let (gate, sent) = (Gate(), Gate())
            let bench = try Bench(
                http2: true,
                more: "timeouts: { response_idle: 2s, response_minimum_rate: 0B/s }"
            ) { connection in
                guard try connection.nextRequest() != nil else { return }
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                try connection.wire.send(head + "6\r\nabcdef\r\n")
                try gate.pass()
                try connection.wire.send("3\r\nghi\r\n")
                try connection.wire.awaitTaken()
                sent.open()
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            let door = try LoopDoor(bench.gateway)
            let client = try bench.connectHTTP2(settings: [(4, 3)])
            client.opensWindows = false
            let id = try client.open(HTTP2Client.get())
            try client.readUntil { client.soFar(id).content.count == 3 }
            try door.shut()
            try client.openWindow(id, by: 3)
            try client.wire.awaitTaken()
            gate.open()
            try sent.pass()
            door.open()
            try expectEqual(client.answer(id).reset, 8)
            expectEqual(client.soFar(id).text, "abcdef")
            door.remove()
        }

        /// The end is a frame of its own, and waits for a window like content.
        @Test func `a window that is used up when the origin ends has to open in time`() throws {
            let gate = Gate()
            let bench = try Bench(
                http2: true,
                more: "timeouts: { response_idle: 2s }"
            ) { connection in
                while try connection.nextRequest() != nil {
                    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    try connection.wire.send(head + "3\r\nabc\r\n")
                    try gate.pass()
                    try connection.wire.send("0\r\n\r\n")
                }
            }
            defer { bench.stop() }
            let client = try bench.connectHTTP2(settings: [(4, 3)])
            client.opensWindows = false
            let taken = try client.open(HTTP2Client.get())
            try client.readUntil { client.soFar(taken).content.count == 3 }
            gate.open()
            try client.openWindow(taken, by: 1)
            #expect(try client.answer(taken).isComplete)
            let left = try client.open(HTTP2Client.get())
            try client.readUntil { client.soFar(left).content.count == 3 }
            gate.open()
            try expectEqual(client.answer(left).reset, 8)
        }

        @Test func `requests at once on a connection count as connections of its address`() throws {
            let gate = Gate()
            let bench = try Bench(
                http2: true,
                more: "limits: { address_connections: 3 }\n" + Self.metrics,
                script: TestOrigin.slow(until: gate)
            )
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let ids = try (0..<4).map { _ in try client.open(HTTP2Client.get("/slow")) }
            // REFUSED_STREAM (RFC 9113 §8.7).
            try expectEqual(client.answer(ids[3]).reset, 7)
            // Nor does the address get another connection.
            #expect(try bench.gateway.connect().endsSilently())
            for _ in ids { gate.open() }
            for id in ids[..<3] { try expectEqual(client.answer(id).status, 200) }
            // Those that have ended count no longer.
            for _ in 0..<8 { try expectEqual(client.ask(HTTP2Client.get()).status, 200) }
            let text = try bench.gateway.askOperators("/metrics").text
            #expect(text.contains("portcullis_address_connections_refused_total 2\n"))
        }
    }
}
