import Expectations
import LoopbackKit
import Testing

extension Scenarios {
    /// Requests that wait for a stream of an origin that is spoken to over HTTP/2.
    struct HTTP2OriginLineTests {
        typealias Server = HTTP2Server
        typealias Place = HTTP2OriginTests.Place

        private static let inside = HTTP2Client.get("/.well-known/app-attest/none")

        /// An origin that takes one request at a time, each when the gate was opened for it.
        private static func place(_ gate: Gate, _ options: String = "") throws -> Place {
            try Place(options: ", http2_connections: 1" + options) { connection in
                let server = try Server(connection, settings: [(3, 1)])
                while let (id, request) = try server.nextRequest() {
                    try gate.pass()
                    try server.answer(id, content: request.path)
                }
            }
        }

        /// Opens requests, and returns when the gateway has read all of them: it answers the last
        /// one itself.
        private static func open(_ paths: [String], _ client: HTTP2Client) throws -> [UInt32] {
            let streams = try paths.map { try client.open(HTTP2Client.get($0)) }
            try expectEqual(client.ask(inside).status, 404)
            return streams
        }

        @Test func `clients take turns, however many requests of one wait`() throws {
            let gate = Gate()
            let place = try Self.place(gate)
            defer { place.stop() }
            let crowd = try place.connect()
            let first = try Self.open(["/first"], crowd)
            #expect(place.origin.wait { $0.first?.heads.count == 1 })
            let others = try Self.open((1...6).map { "/\($0)" }, crowd)
            let lone = try HTTP2Client(try Wire(port: place.gateway.port, from: 2))
            let its = try Self.open(["/lone"], lone)
            for _ in 0..<8 { gate.open() }
            for id in first + others { try expectEqual(crowd.answer(id).status, 200) }
            try expectEqual(lone.answer(its[0]).text, "/lone")
            let order = place.origin.requests.map(\.target)
            expectEqual(order, ["/first", "/1", "/lone", "/2", "/3", "/4", "/5", "/6"])
        }

        /// As `queue: { max: 0 }` says: none waits for a connection that is full.
        @Test func `requests whose connection is still to be made need no place in the line`()
            throws
        {
            let queue = ", queue: { max: 0 }"
            let place = try Place(options: queue)
            defer { place.stop() }
            let client = try place.connect()
            for id in try Self.open(["/1", "/2", "/3"], client) {
                try expectEqual(client.answer(id).status, 200)
            }
            let gate = Gate()
            let full = try Self.place(gate, queue)
            defer { full.stop() }
            let crowd = try full.connect()
            let first = try Self.open(["/first"], crowd)
            #expect(full.origin.wait { $0.first?.heads.count == 1 })
            let other = try Self.open(["/1"], crowd)
            try expectEqual(crowd.answer(other[0]).status, 503)
            gate.open()
            try expectEqual(crowd.answer(first[0]).status, 200)
        }

        @Test func `a client that fills the line can't keep another one out`() throws {
            let gate = Gate()
            let place = try Self.place(gate, ", queue: { max: 3 }")
            defer { place.stop() }
            let crowd = try place.connect()
            let first = try Self.open(["/first"], crowd)
            #expect(place.origin.wait { $0.first?.heads.count == 1 })
            let others = try Self.open(["/1", "/2", "/3"], crowd)
            let lone = try HTTP2Client(try Wire(port: place.gateway.port, from: 2))
            let its = try Self.open(["/lone"], lone)
            try expectEqual(crowd.answer(others[2]).status, 503)
            for _ in 0..<4 { gate.open() }
            try expectEqual(lone.answer(its[0]).text, "/lone")
            for id in first + others[..<2] { try expectEqual(crowd.answer(id).status, 200) }
        }
    }
}
