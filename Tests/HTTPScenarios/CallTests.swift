import Expectations
import HTTPWire
import LoopbackKit
import Proxy
import Services
import Testing

extension Scenarios {
    /// Requests of the gateway's own, against servers that say what a script says.
    struct CallTests {
        /// Calls a server that says this, and then waits where `isOpen`.
        private func outcome(
            of bytes: String,
            isOpen: Bool = false,
            _ change: (inout HTTPClient.Settings) -> Void = { _ in }
        ) throws -> CallBench.Outcome {
            let origin = try TestOrigin { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send(bytes)
                if isOpen { try connection.awaitEnd() }
            }
            defer { origin.stop() }
            return try CallBench([origin.address], firstByte: 300, change).call()
        }

        @Test func `a call sends its request and reads the whole response`() throws {
            let origin = try TestOrigin { connection in
                guard let request = try connection.nextRequest() else { return }
                let text = String(decoding: request.body, as: UTF8.self)
                try connection.answer(201, body: text, fields: "X-A: 1\r\n", to: request)
            }
            defer { origin.stop() }
            var request = HTTPRequest(.post, "/a?b=%20", authority: "called.test")
            request.fields = [("Content-Type", "text/plain"), ("Host", "other.test")]
            request.content = Array("hello".utf8)
            let response = try CallBench([origin.address]).call(request).get()
            expectEqual(response.status, 201)
            expectEqual(response.field("x-a"), "1")
            expectEqual(response.content, Array("hello".utf8))
            let sent = try #require(origin.requests.first)
            expectEqual(sent.method, "POST")
            expectEqual(sent.target, "/a?b=%20")
            expectEqual(sent.head.all("host"), ["called.test"])
            expectEqual(sent.head.all("content-type"), ["text/plain"])
            expectEqual(sent.head.all("connection"), ["close"])
        }

        @Test(arguments: ["", "x", "/a b", "/a\r\nX: 1", "/#a", "http://a/"])
        func `a target that would break the request is not sent`(_ target: String) throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let outcome = try CallBench([origin.address]).call(CallBench.get(target))
            expectEqual(outcome, .failure(.targetMalformed))
            #expect(origin.connections.isEmpty)
        }

        @Test func `chunked content comes without its framing, behind interim responses`() throws {
            let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            let outcome = try outcome(of: early + head + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
            let response = try outcome.get()
            expectEqual(response.status, 200)
            expectEqual(response.content, Array("abcde".utf8))
        }

        @Test func `content that ends with the connection is whole`() throws {
            let response = try outcome(of: "HTTP/1.0 200 OK\r\n\r\nall").get()
            expectEqual(response.content, Array("all".utf8))
        }

        @Test(arguments: [
            "", "HTTP/1.1 200 OK\r\nContent-Le",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ])
        func `a response that ends too early is none`(_ bytes: String) throws {
            try expectEqual(outcome(of: bytes), .failure(.closed))
        }

        @Test(arguments: [
            ("HTTP/1.1 2000 OK\r\n\r\n", Malformed.Reason.statusLineSyntax),
            ("HTTP/1.1 200 OK\nX: 1\r\n\r\n", .bareLineFeed),
            ("HTTP/1.1 101 Go\r\nUpgrade: websocket\r\n\r\n", .upgradeUnasked),
        ])
        func `a malformed response is none`(_ bytes: String, _ reason: Malformed.Reason) throws {
            try expectEqual(outcome(of: bytes, isOpen: true), .failure(.responseMalformed(reason)))
        }

        @Test(arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n"
                + String(repeating: "a", count: 100),
            "HTTP/1.0 200 OK\r\n\r\n" + String(repeating: "a", count: 100),
        ])
        func `content over the limit is not gathered`(_ bytes: String) throws {
            let outcome = try outcome(of: bytes, isOpen: true) { $0.contentMax = 99 }
            expectEqual(outcome, .failure(.contentTooLarge))
        }

        @Test func `more interim responses than may be end the call`() throws {
            let interim = String(repeating: "HTTP/1.1 103 Early\r\n\r\n", count: 5)
            let outcome = try outcome(of: interim, isOpen: true) { $0.interimMax = 4 }
            expectEqual(outcome, .failure(.tooManyInterimResponses))
        }

        @Test func `a server that does not answer, or stops, is given up`() throws {
            try expectEqual(outcome(of: "", isOpen: true), .failure(.firstByteTimedOut))
            let begun = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na"
            let stalled = try outcome(of: begun, isOpen: true) { $0.idleTimeout = 100 }
            expectEqual(stalled, .failure(.stalled))
            let late = try outcome(of: begun, isOpen: true) { $0.totalTimeout = 100 }
            expectEqual(late, .failure(.timedOut))
        }

        @Test func `a server that drips content is given up when the time for the call is over`()
            throws
        {
            let origin = try TestOrigin { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                // Several bytes in each tick of the event loop: they must not move the deadline.
                while !connection.wire.isReadable(within: 1) {
                    try connection.wire.send("1\r\na\r\n")
                }
            }
            defer { origin.stop() }
            let bench = try CallBench([origin.address]) { $0.totalTimeout = 300 }
            try expectEqual(bench.call(), .failure(.timedOut))
        }

        @Test func `a server that takes no connection fails the call with why`() throws {
            let refusing = try RefusingPort()
            try expectEqual(
                CallBench([refusing.address]).call(),
                .failure(.unreachable(.originUnreachable))
            )
            let deaf = try DeafPort()
            let timedOut = try CallBench([deaf.address], connect: 100).call()
            expectEqual(timedOut, .failure(.unreachable(.originTimeout)))
            let late = try CallBench([deaf.address]) { $0.totalTimeout = 100 }.call()
            expectEqual(late, .failure(.timedOut))
        }

        @Test func `another server is tried where the first takes no connection`() throws {
            let origin = try TestOrigin()
            let deaf = try DeafPort()
            defer { origin.stop() }
            let refusing = try RefusingPort()
            let bench = try CallBench([refusing.address, deaf.address, origin.address])
            try expectEqual(bench.call().get().status, 200)
            withExtendedLifetime(deaf) {}
        }

        @Test func `calls share a connection where some may be kept, and not otherwise`() throws {
            for (kept, connections) in [(0, 3), (1, 1)] {
                let origin = try TestOrigin()
                defer { origin.stop() }
                let bench = try CallBench([origin.address]) { $0.idleMax = kept }
                for _ in 0..<3 { try expectEqual(bench.call().get().status, 200) }
                expectEqual(origin.connections.count, connections)
            }
        }

        @Test func `a call whose kept connection has just ended is repeated once, if harmless`()
            throws
        {
            let origin = try TestOrigin { connection in
                guard let first = try connection.nextRequest() else { return }
                try connection.answer(200, body: "ok", to: first)
                // The first connection takes a second request and ends without an answer.
                _ = try connection.nextRequest()
            }
            defer { origin.stop() }
            let bench = try CallBench([origin.address]) { $0.idleMax = 1 }
            try expectEqual(bench.call().get().status, 200)
            try expectEqual(bench.call().get().status, 200)
            expectEqual(origin.connections.count, 2)
            let post = HTTPRequest(.post, "/", authority: "called.test")
            try expectEqual(bench.call(post), .failure(.closed))
        }

        @Test func `a cancelled call closes its connection and tells nothing`() throws {
            let reached = Gate()
            let origin = try TestOrigin { connection in
                guard try connection.nextRequest() != nil else { return }
                reached.open()
                try connection.awaitEnd()
            }
            defer { origin.stop() }
            #expect(try !CallBench([origin.address]).cancelled(when: reached))
            #expect(origin.wait { $0.allSatisfy { !$0.isOpen } })
        }
    }
}
