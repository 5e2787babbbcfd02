import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    struct FailureTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

        /// Reads a request, sends this, ends.
        private static func sending(_ text: String) -> TestOrigin.Script {
            { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send(text)
            }
        }

        @Test func `an origin that does not answer in time is answered for with 504`() throws {
            let bench = try Bench(more: "timeouts: { first_byte: 100ms }") { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.get)
            try expectEqual(client.readResponse().status, 504)
            #expect(bench.origin.wait { !$0[0].isOpen })
        }

        /// Found as: uploads that took longer than `timeouts.connect` were answered 504.
        @Test func `an upload may take longer than a connect or the time in the pool`() throws {
            let bench = try Bench(more: "timeouts: { connect: 500ms, pool_idle: 500ms }")
            defer { bench.stop() }
            let client = try bench.connect()
            // Whichever connection the second one takes, a new one or a pooled one.
            for _ in 0..<2 {
                try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
                #expect(!client.isReadable(within: 700))
                try client.send("world")
                try expectEqual(client.readResponse().status, 200)
            }
        }

        /// Found as: requests whose end the origin took late waited for it without a limit.
        @Test func `an origin that takes the last bytes late and never answers is given up`()
            throws
        {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let gate = Gate()
            let origin = try TestOrigin(path: folder + "/origin") { connection in
                guard let head = try connection.nextHead() else { return }
                try gate.pass()
                _ = try connection.finish(head)
                try connection.awaitEnd()
            }
            defer { origin.stop() }
            let gateway = try TestGateway(origin, more: "timeouts: { first_byte: 500ms }")
            defer { gateway.stop() }
            // A Unix socket takes 208 KiB and one more write, and the origin may have read 64 KiB
            // with the head. Of these lengths some end with bytes that wait, and the last one
            // always does, however the kernel counts.
            let began = ContinuousClock.now
            let lengths = Array(stride(from: 180_000, through: 420_000, by: 20_000)) + [600_000]
            let clients = try lengths.map { count in
                let client = try gateway.connect()
                try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n")
                try client.send([UInt8](repeating: 0x61, count: count))
                return client
            }
            // No answer is due to the last one yet.
            let isEarly = clients.last?.isReadable(within: 700)
            expectEqual(isEarly, false)
            for _ in clients { gate.open() }
            for client in clients { try expectEqual(client.readResponse().status, 504) }
            #expect(began.duration(to: .now) >= .milliseconds(500 + 700 - 50))
        }

        @Test(arguments: ["", "HTTP/1.1 200 OK\r\nContent-Le", "nonsense\r\n\r\n", "\0\0\0"])
        func `an origin without a valid head is answered for with 502`(_ text: String) throws {
            let bench = try Bench(script: Self.sending(text))
            defer { bench.stop() }
            let client = try bench.connect()
            for _ in 0..<2 {
                try client.send(Self.get)
                try expectEqual(client.readResponse().status, 502)
            }
        }

        @Test(arguments: [
            "Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", "Transfer-Encoding: chunked\r\n\r\nx",
        ])
        func `a response that is cut short has no end that looks like one`(_ rest: String) throws {
            let bench = try Bench(script: Self.sending("HTTP/1.1 200 OK\r\n" + rest))
            defer { bench.stop() }
            for version in ["1.0", "1.1"] {
                let client = try bench.connect()
                try client.send("GET / HTTP/\(version)\r\nHost: a\r\n\r\n")
                #expect(throws: WireFault.self) { try client.readResponse() }
            }
        }

        @Test func `an origin that stalls within a response is cut off`() throws {
            let bench = try Bench(more: "timeouts: { response_idle: 150ms }") { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            for version in ["1.0", "1.1"] {
                let client = try bench.connect()
                try client.send("GET / HTTP/\(version)\r\nHost: a\r\n\r\n")
                #expect(throws: WireFault.self) { try client.readResponse() }
            }
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
        }

        @Test func `bytes behind a response are nobody's`() throws {
            let first = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            let bench = try Bench { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send(first + first.replacing("ok", with: "no"))
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            let client = try bench.connect()
            for _ in 0..<3 {
                try client.send(Self.get)
                try expectEqual(client.readResponse().text, "ok")
            }
            expectEqual(bench.origin.connections.count, 3)
        }

        @Test(arguments: [
            "Content-Length: 10000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\n",
        ])
        func `an early response ends the upload and both connections`(_ rest: String) throws {
            let bench = try Bench { connection in
                guard let head = try connection.nextHead() else { return }
                try connection.answer(413, body: "too large", to: head)
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send("POST / HTTP/1.1\r\nHost: a\r\n\(rest)hel")
            let answer = try client.readResponse()
            expectEqual(answer.status, 413)
            expectEqual(answer.text, "too large")
            expectEqual(answer.head.all("connection"), ["close"])
            // What still comes is read away, so that no reset destroys the answer.
            try client.send([UInt8](repeating: 0, count: 10_000))
            #expect(try client.endsSilently())
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
            #expect(bench.origin.requests.isEmpty)
        }

        @Test func `an origin that answers and is gone before the content still answers`() throws {
            let fields = "Content-Length: 9\r\nConnection: close\r\n"
            let early = EarlyAnswer(["HTTP/1.1 413 No\r\n\(fields)\r\ntoo large"])
            let bench = try Bench(script: early.play)
            defer { bench.stop() }
            let answer = try early.ask(bench.gateway, of: bench.origin)
            expectEqual(answer.status, 413)
            expectEqual(answer.text, "too large")
        }

        /// The kernel reports a reset once: here to the write of the content, and to no read.
        @Test func `a response until the connection's end is not whole where a reset ended it`()
            throws
        {
            let early = EarlyAnswer(["HTTP/1.1 413 No\r\n\r\n", "too large"])
            let bench = try Bench(script: early.play)
            defer { bench.stop() }
            do {
                let answer = try early.ask(bench.gateway, of: bench.origin)
                Issue.record("given as a whole response: \(answer.status) \(answer.text)")
            } catch WireFault.ended, WireFault.reset {
                // Content of the client that the gateway has not read turns the end into a reset.
            }
        }

        @Test(arguments: ["Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n"])
        func `a client that vanishes within its content leaves no whole request`(_ rest: String)
            throws
        {
            let bench = try Bench()
            defer { bench.stop() }
            for (number, isReset) in [true, false].enumerated() {
                let client = try bench.connect()
                try client.send("POST / HTTP/1.1\r\nHost: a\r\n\(rest)")
                #expect(bench.origin.wait { $0.count == number + 1 && $0[number].heads.count == 1 })
                if isReset { client.reset() } else { client.close() }
                #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
            }
            #expect(bench.origin.requests.isEmpty)
        }

        @Test func `a client that vanishes while it waits frees the origin's connection`() throws {
            let bench = try Bench { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.get)
            #expect(bench.origin.wait { $0.first?.requests.count == 1 })
            client.reset()
            #expect(bench.origin.wait { !$0[0].isOpen })
        }

        @Test func `a client that vanishes within a response frees the origin's connection`() throws
        {
            let bench = try Bench { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
                let block = [UInt8](repeating: 0, count: 1 << 16)
                while true { try connection.wire.send(block) }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.get)
            _ = try client.readHead()
            client.close()
            #expect(bench.origin.wait { !$0[0].isOpen })
        }

        @Test func `content that stops coming is answered 408`() throws {
            let bench = try Bench(more: "timeouts: { body_idle: 150ms }")
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
            let answer = try client.readResponse()
            expectEqual(answer.status, 408)
            expectEqual(answer.head.all("connection"), ["close"])
            #expect(try client.endsSilently())
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
            #expect(bench.origin.requests.isEmpty)
        }

        @Test func `a client that takes nothing of its response is cut off`() throws {
            let bench = try Bench(more: "timeouts: { response_idle: 200ms }") { connection in
                guard try connection.nextRequest() != nil else { return }
                let block = [UInt8](repeating: 0, count: 1 << 16)
                try connection.wire.send("HTTP/1.1 200 OK\r\n\r\n")
                while true { try connection.wire.send(block) }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
            #expect(bench.origin.wait { $0.first.map { !$0.isOpen } ?? false })
            // Its end is that of the connection, so an orderly one would look whole.
            #expect(throws: WireFault.reset) { try client.readResponse() }
        }
    }
}
