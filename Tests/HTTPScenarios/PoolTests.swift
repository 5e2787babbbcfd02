import Expectations
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    struct PoolTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        private static let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"

        /// Answers one request a connection, then ends it without having said so.
        private static let forgetful: TestOrigin.Script = { connection in
            guard let request = try connection.nextRequest() else { return }
            try connection.answer(200, body: "ok", to: request)
        }

        /// Answers the first request of the first connection, and takes a second one without an
        /// answer; others it answers.
        private static let dying: TestOrigin.Script = { connection in
            while let request = try connection.nextRequest() {
                if connection.number == 0, request.target == "/second" { return }
                try connection.answer(200, body: "\(connection.number)", to: request)
            }
        }

        @Test func `clients that come one after the other share a connection to the origin`() throws
        {
            let bench = try Bench()
            defer { bench.stop() }
            for _ in 0..<10 { try expectEqual(bench.gateway.ask(Self.get).text, "ok") }
            expectEqual(bench.origin.connections.count, 1)
        }

        @Test func `no more connections are kept than may be`() throws {
            let gate = Gate()
            let bench = try Bench(more: "limits: { pooled: 2 }") { connection in
                while let request = try connection.nextRequest() {
                    try gate.pass()
                    try connection.answer(200, body: "ok", to: request)
                }
            }
            defer { bench.stop() }
            let clients = try (0..<5).map { _ in try bench.connect() }
            for client in clients { try client.send(Self.get) }
            // Before the first is answered: the connection it leaves would serve another.
            #expect(bench.origin.wait { $0.flatMap(\.requests).count == clients.count })
            for _ in clients { gate.open() }
            for client in clients { try expectEqual(client.readResponse().status, 200) }
            #expect(bench.origin.wait { $0.count { $0.isOpen } == 2 && $0.count == 5 })
        }

        @Test(arguments: [get, post])
        func `a connection that the origin has ended is not used again`(_ request: String) throws {
            let bench = try Bench(script: Self.forgetful)
            defer { bench.stop() }
            for number in 1...5 {
                try expectEqual(bench.gateway.ask(request).text, "ok")
                #expect(bench.origin.wait { $0.count == number && !$0[number - 1].isOpen })
            }
        }

        @Test func `a GET that meets the end of a reused connection is sent once more`() throws {
            let bench = try Bench(script: Self.dying)
            defer { bench.stop() }
            try expectEqual(bench.gateway.ask(Self.get).text, "0")
            let second = Self.get.replacing("GET /", with: "GET /second")
            try expectEqual(bench.gateway.ask(second).text, "1")
            expectEqual(bench.origin.requests.map(\.target), ["/", "/second", "/second"])
        }

        @Test(arguments: [1, 1024, 100_000])
        func `a PUT that meets the end of a reused connection is sent once more with its content`(
            count: Int
        ) throws {
            let bench = try Bench { connection in
                // Reads the head of the second request alone.
                while let head = try connection.nextHead() {
                    if connection.number == 0, head.target == "/second" { return }
                    let request = try connection.finish(head)
                    try connection.answer(200, body: "\(request.body.count)", to: request)
                }
            }
            defer { bench.stop() }
            try expectEqual(bench.gateway.ask(Self.get).text, "0")
            let content = String(repeating: "x", count: count)
            let second =
                "PUT /second HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n\(content)"
            let response = try bench.gateway.ask(second, method: "PUT")
            // More than that is not kept for a second attempt.
            expectEqual(response.status, count <= 1024 ? 200 : 502)
            if count <= 1024 { expectEqual(response.text, "\(count)") }
        }

        @Test func `it is not sent a third time`() throws {
            let bench = try Bench { connection in
                while let request = try connection.nextRequest() {
                    if request.target == "/second" { return }
                    try connection.answer(200, body: "ok", to: request)
                }
            }
            defer { bench.stop() }
            try expectEqual(bench.gateway.ask(Self.get).text, "ok")
            let second = Self.get.replacing("GET /", with: "GET /second")
            try expectEqual(bench.gateway.ask(second).status, 502)
            expectEqual(bench.origin.requests.map(\.target), ["/", "/second", "/second"])
        }

        @Test func `the second attempt uses no connection that may be stale as well`() throws {
            let gate = Gate()
            let bench = try Bench { connection in
                while let request = try connection.nextRequest() {
                    if request.target == "/both" { try gate.pass() }
                    // Whichever old connection is asked, it ends; new ones answer.
                    if request.target == "/second", connection.number < 2 { return }
                    try connection.answer(200, body: "\(connection.number)", to: request)
                }
            }
            defer { bench.stop() }
            let clients = try (0..<2).map { _ in try bench.connect() }
            for client in clients {
                try client.send(Self.get.replacing("GET /", with: "GET /both"))
            }
            #expect(bench.origin.wait { $0.flatMap(\.requests).count == clients.count })
            for _ in clients { gate.open() }
            for client in clients { try expectEqual(client.readResponse().status, 200) }
            expectEqual(bench.origin.connections.count, 2)
            let second = Self.get.replacing("GET /", with: "GET /second")
            try expectEqual(bench.gateway.ask(second).text, "2")
        }

        @Test func `a POST that was sent is not sent again`() throws {
            let bench = try Bench(script: Self.dying)
            defer { bench.stop() }
            try expectEqual(bench.gateway.ask(Self.get).text, "0")
            let second = Self.post.replacing("POST /", with: "POST /second")
            try expectEqual(bench.gateway.ask(second).status, 502)
            expectEqual(bench.origin.requests.map(\.target), ["/", "/second"])
        }

        @Test func `bytes without a request make a connection useless`() throws {
            let gate = Gate()
            let bench = try Bench { connection in
                while let request = try connection.nextRequest() {
                    try connection.answer(200, body: "\(connection.number)", to: request)
                    guard connection.number == 0 else { continue }
                    try gate.pass()
                    try connection.wire.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
                    return try connection.awaitEnd()
                }
            }
            defer { bench.stop() }
            try expectEqual(bench.gateway.ask(Self.get).text, "0")
            gate.open()
            #expect(bench.origin.wait { !$0[0].isOpen })
            try expectEqual(bench.gateway.ask(Self.get).text, "1")
        }

        private static let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"

        /// Answers the first request of the first connection when `answer` opens, sends bytes that
        /// nobody asked for when `more` opens, and says when the gateway's system has each. Later
        /// connections answer with their number.
        private static func talkative(answer: Gate, more: Gate, done: Gate) -> TestOrigin.Script {
            { connection in
                while let request = try connection.nextRequest() {
                    guard connection.number == 0 else {
                        try connection.answer(200, body: "\(connection.number)", to: request)
                        continue
                    }
                    done.open()
                    try answer.pass()
                    try connection.answer(200, body: "0", to: request)
                    try connection.wire.awaitTaken()
                    done.open()
                    try more.pass()
                    try connection.wire.send(evil)
                    try connection.wire.awaitTaken()
                    done.open()
                    return try connection.awaitEnd()
                }
            }
        }

        /// The event loop finds the next request before it finds what the origin has sent
        /// meanwhile.
        @Test(arguments: [get, post])
        func `bytes that came while a connection was idle answer no request`(
            _ request: String
        ) throws {
            let (answer, more, done) = (Gate(), Gate(), Gate())
            let bench = try Bench(script: Self.talkative(answer: answer, more: more, done: done))
            defer { bench.stop() }
            let door = try LoopDoor(bench.gateway)
            let client = try bench.connect()
            answer.open()
            try client.send(Self.get)
            try expectEqual(client.readResponse().text, "0")
            for _ in 0..<2 { try done.pass() }
            try door.shut()
            try client.send(request)
            try client.awaitTaken()
            more.open()
            try done.pass()
            door.open()
            try expectEqual(client.readResponse().text, "1")
            door.remove()
        }

        /// The next request waits already, so the connection goes from one to the other at once.
        ///
        /// An event loop that gets no processor for a while polls between the two, before these
        /// bytes have come. It can't know of them then, and the test begins again.
        @Test(arguments: [get, post])
        func `bytes right behind a response answer no request`(_ request: String) throws {
            #expect(try eventually { try Self.isServedAtOnce(behindFirst: request) })
        }

        /// - Returns: whether the event loop served both requests after one poll, as is tested.
        private static func isServedAtOnce(behindFirst request: String) throws -> Bool {
            let (answer, more, done) = (Gate(), Gate(), Gate())
            let bench = try Bench(script: talkative(answer: answer, more: more, done: done))
            defer { bench.stop() }
            let door = try LoopDoor(bench.gateway)
            let client = try bench.connect()
            try client.send(get + request)
            // The origin has the first request. While the event loop stands, its response comes,
            // and behind it what makes the event loop stand again when it has read the response.
            try done.pass()
            try door.shut()
            answer.open()
            try done.pass()
            let isInOnePoll = try door.shutAgain() == 1
            more.open()
            try done.pass()
            door.open()
            try expectEqual(client.readResponse().text, "0")
            let second = try client.readResponse().text
            door.remove()
            if isInOnePoll { expectEqual(second, "1") }
            return isInOnePoll
        }

        @Test(arguments: ["Content-Length: 4\r\n", "Transfer-Encoding: chunked\r\n"])
        func `a connection is not used again behind an announcement to HEAD`(
            _ framing: String
        ) throws {
            let bench = try Bench { connection in
                while let request = try connection.nextRequest() {
                    guard request.method == "HEAD" else {
                        try connection.answer(200, body: "\(connection.number)", to: request)
                        continue
                    }
                    try connection.wire.send("HTTP/1.1 200 OK\r\n\(framing)\r\n")
                }
            }
            defer { bench.stop() }
            let head = Self.get.replacing("GET", with: "HEAD")
            try expectEqual(bench.gateway.ask(head, method: "HEAD").status, 200)
            try expectEqual(bench.gateway.ask(Self.get).text, "1")
        }

        @Test func `servers are used in turn`() throws {
            let origins = try (0..<3).map { _ in try TestOrigin() }
            defer { for origin in origins { origin.stop() } }
            let gateway = try TestGateway(
                [("shop", origins.map(\.address))],
                more: "limits: { pooled: 0 }"
            )
            defer { gateway.stop() }
            for _ in 0..<9 { try expectEqual(gateway.ask(Self.get).status, 200) }
            expectEqual(origins.map(\.requests.count), [3, 3, 3])
        }

        @Test(arguments: [get, post])
        func `a server that refuses is passed over`(_ request: String) throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let refusing = try RefusingPort()
            let gateway = try TestGateway(
                [("shop", [refusing.address, origin.address])],
                more: "limits: { pooled: 0 }"
            )
            defer { gateway.stop() }
            for _ in 0..<6 { try expectEqual(gateway.ask(request).status, 200) }
            expectEqual(origin.requests.count, 6)
            withExtendedLifetime(refusing) {}
        }

        @Test func `a server that does not answer the connect is passed over`() throws {
            let origin = try TestOrigin()
            let deaf = try DeafPort()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [deaf.address, origin.address])],
                // The other one's connect must not take as long, on whatever machine.
                more: "timeouts: { connect: 1s }\nlimits: { pooled: 0 }"
            )
            defer { gateway.stop() }
            for _ in 0..<4 { try expectEqual(gateway.ask(Self.post).status, 200) }
            withExtendedLifetime(deaf) {}
        }

        @Test func `without any server that takes a connection the answer is 502`() throws {
            let refusing = try RefusingPort()
            let gateway = try TestGateway([("shop", [refusing.address])])
            defer { gateway.stop() }
            for request in [Self.get, Self.post] {
                try expectEqual(gateway.ask(request).status, 502)
            }
            withExtendedLifetime(refusing) {}
        }

        @Test func `without any server that answers a connect the answer is 504`() throws {
            let deaf = try DeafPort()
            let gateway = try TestGateway(
                [("shop", [deaf.address])],
                more: "timeouts: { connect: 100ms }"
            )
            defer { gateway.stop() }
            try expectEqual(gateway.ask(Self.get).status, 504)
            withExtendedLifetime(deaf) {}
        }
    }
}
