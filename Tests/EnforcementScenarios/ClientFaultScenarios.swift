import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// What the origin, the log and the metrics see when a client vanishes or stands still.
    @Suite struct ClientFaults {
        /// How a client leaves.
        enum Ending: String, CaseIterable, Sendable { case end, reset }

        private static let impatient =
            "timeouts: { head: 200ms, body_idle: 200ms, response_idle: 200ms, linger: 100ms }"

        private static func leave(_ client: Wire, _ ending: Ending) {
            switch ending {
            case .end: client.close()
            case .reset: client.reset()
            }
        }

        @Test(arguments: Ending.allCases)
        func `a client that vanishes before its head is complete is no request`(
            ending: Ending
        ) throws {
            let stand = try Stand()
            defer { stand.end() }
            let requests = try Metrics(stand.admin)["requests_total"]
            for bytes in ["", "GET /half HT", "GET /half HTTP/1.1\r\nHost: a\r\n"] {
                let accepted = try Metrics(stand.admin)["client_connections_total"]
                let client = try stand.send(bytes)
                try stand.gateway.waitUntil("the connection", stand.admin) {
                    $0["client_connections_total"] > accepted
                }
                Self.leave(client, ending)
                try stand.expect()
            }
            try expectEqual(Metrics(stand.admin)["requests_total"], requests)
            #expect(!stand.gateway.child.printed.contains("/half"))
            try stand.stop()
        }

        @Test(arguments: Ending.allCases)
        func `a client that vanishes within its content is told of as such`(
            ending: Ending
        ) throws {
            let stand = try Stand()
            defer { stand.end() }
            for (path, content) in [("/a", ""), ("/b", "hello")] {
                let requests = try Metrics(stand.admin)["requests_total"]
                let client = try stand.send(
                    "POST \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n\(content)"
                )
                try stand.gateway.waitUntil("the request", stand.admin) {
                    $0["requests_total"] > requests
                }
                Self.leave(client, ending)
                try stand.expectLine(path, 0, "client-aborted")
                try stand.expect("client_aborts")
            }
            try stand.stop()
        }

        @Test func `a client that resets while it waits is told of as such`() throws {
            let stand = try Stand()
            defer { stand.end() }
            let client = try stand.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
            try stand.origin.awaitHeld(1)
            Self.leave(client, .reset)
            try stand.expectLine("/held", 0, "client-aborted")
            stand.origin.release()
            try stand.expect("client_aborts")
            try stand.stop()
        }

        /// An end alone says that no more requests follow; only a write tells that nobody reads.
        @Test func `a client that ends while it waits is answered into the void`() throws {
            let stand = try Stand()
            defer { stand.end() }
            let client = try stand.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
            try stand.origin.awaitHeld(1)
            Self.leave(client, .end)
            stand.origin.release()
            try stand.expectLine("/held", 200, nil)
            try stand.expect()
            try stand.stop()
        }

        @Test(arguments: Ending.allCases)
        func `a client that vanishes within its response is told of as such`(
            ending: Ending
        ) throws {
            let stand = try Stand()
            defer { stand.end() }
            let client = try stand.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
            try expectEqual(client.readHead().startLine, "HTTP/1.1 200 OK")
            Self.leave(client, ending)
            try stand.expectLine("/endless", 200, "client-aborted")
            try stand.expect("client_aborts")
            try stand.stop()
        }

        @Test func `a client that stands still at any stage is told of as such`() throws {
            let stand = try Stand(more: Self.impatient)
            defer { stand.end() }
            let head = try stand.send("GET /half HTTP/1.1\r\n")
            try expectEqual(head.readHead().startLine, "HTTP/1.1 408 Request Timeout")
            Self.leave(head, .end)
            try stand.expect("client_timeouts")

            let body = try stand.send("POST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhi")
            try expectEqual(body.readHead().startLine, "HTTP/1.1 408 Request Timeout")
            Self.leave(body, .end)
            try stand.expectLine("/c", 408, "body-timeout")
            try stand.expect("client_timeouts")

            let response = try stand.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
            try stand.expectLine("/endless", 200, "client-timeout")
            Self.leave(response, .end)
            try stand.expect("client_timeouts")
            try stand.stop()
        }

        @Test func `what is cut off at the end of the time to drain is told of as such`() throws {
            let stand = try Stand(more: "timeouts: { drain: 200ms }")
            defer { stand.end() }
            let client = try stand.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
            try expectEqual(client.readHead().startLine, "HTTP/1.1 200 OK")
            try stand.stop()
            try stand.expectLine("/endless", 200, "drain-timeout")
            Self.leave(client, .end)
        }
    }
}

extension Stand {
    /// A client of its own that has sent this; counters are marked before.
    fileprivate func send(_ bytes: String) throws -> Wire {
        try mark()
        let client = try Wire(port: gateway.port)
        try client.send(bytes)
        return client
    }

    /// Waits until the gateway has closed whatever there was, and compares the counters.
    fileprivate func expect(
        _ counters: String...,
        location: SourceLocation = #_sourceLocation
    ) throws {
        try awaitRest()
        try expectMoved(counters, location: location)
    }
}
