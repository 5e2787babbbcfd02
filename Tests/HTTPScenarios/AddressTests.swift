import Expectations
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// The limits of each client address.
    struct AddressTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

        private static func get(for address: String) -> String {
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: \(address)\r\n\r\n"
        }

        /// Asks until it is throttled, and says how often it was not. At one request a second
        /// that is so many as `burst`, and one for each second that passes.
        private static func untilThrottled(
            burst: Int,
            _ ask: () throws -> WireResponse
        ) throws -> WireResponse {
            let began = ContinuousClock.now
            var served = 0
            while true {
                let answer = try ask()
                let seconds = Int(began.duration(to: .now).components.seconds)
                if answer.status == 429 {
                    #expect(served >= burst)
                    return answer
                }
                expectEqual(answer.status, 200)
                served += 1
                try #require(served <= burst + 1 + seconds, "in \(seconds) s")
            }
        }

        /// One connection at a time asks, and says how it was answered.
        private static func statuses(_ client: Wire, _ requests: [String]) throws -> [Int] {
            try requests.map { request in
                try client.send(request)
                return try client.readResponse().status
            }
        }

        @Test func `a connection more than an address may have is closed, and others serve on`()
            throws
        {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                loops: 2,
                more: "limits: { address_connections: 3 }"
            )
            defer { gateway.stop() }
            let clients = try (0..<3).map { _ in try gateway.connect() }
            for client in clients { try expectEqual(Self.statuses(client, [Self.get]), [200]) }
            #expect(try gateway.connect().endsSilently())
            for client in clients { try expectEqual(Self.statuses(client, [Self.get]), [200]) }
            // Once the gateway has seen one go, there is room for another, on whatever event loop.
            // The client may see its end before the gateway has counted it.
            clients[0].finishSending()
            #expect(try clients[0].readToEnd().isEmpty)
            var status: Int?
            eventually {
                status = try? gateway.ask(Self.get).status
                return status != nil
            }
            expectEqual(status, 200)
        }

        @Test func `requests over the rate of an address are answered 429, and serve on later`()
            throws
        {
            let bench = try Bench(more: "limits: { address_requests: 1/s, address_burst: 5 }")
            defer { bench.stop() }
            let client = try bench.connect()
            _ = try Self.untilThrottled(burst: 5) {
                try client.send(Self.get)
                return try client.readResponse()
            }
            // The connection goes on when its pause is over, with what was pipelined meanwhile.
            try client.send(Self.get + Self.get)
            for _ in 0..<2 {
                let status = try client.readResponse().status
                #expect(status == 200 || status == 429)
            }
        }

        /// What waits is known before the event loop goes on, and it stands still again behind the
        /// other address.
        @Test func `what one address has waiting does not hold up another`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            let door = try LoopDoor(bench.gateway, host: 2)
            let flood = try (0..<60).map { _ in try bench.connect() }
            let other = try Wire(port: bench.gateway.port, from: 2)
            // All are accepted.
            for client in flood + [other] {
                try client.send(Self.get)
                try expectEqual(client.readResponse().status, 200)
            }
            try door.shut()
            for client in flood + [other] { try client.send("malformed\r\n\r\n") }
            try door.shutAgain()
            #expect(other.isReadable(within: 0))
            #expect(flood.contains { !$0.isReadable(within: 0) })
            door.open()
            for client in flood + [other] { try expectEqual(client.readResponse().status, 400) }
            door.remove()
        }

        @Test func `the answer says when, and why`() throws {
            let bench = try Bench(more: "limits: { address_requests: 1/s, address_burst: 1 }")
            defer { bench.stop() }
            let answer = try Self.untilThrottled(burst: 1) { try bench.gateway.ask(Self.get) }
            expectEqual(answer.head.value("retry-after"), "1")
            #expect(answer.text.contains(#""reason":"address-throttled""#))
            #expect(answer.text.contains(#""next":"retry-later""#))
        }

        @Test func `the rate is that of the address, not of the connection`() throws {
            let bench = try Bench(more: "limits: { address_requests: 1/s, address_burst: 2 }")
            defer { bench.stop() }
            _ = try Self.untilThrottled(burst: 2) { try bench.gateway.ask(Self.get) }
        }

        @Test func `calls of the gateway's own endpoints have a rate of their own`() throws {
            let bench = try Bench(more: "limits: { address_calls: 1/s }")
            defer { bench.stop() }
            let client = try bench.connect()
            let gets = Array(repeating: Self.get, count: 4)
            #expect(try Self.statuses(client, gets).allSatisfy { $0 == 200 })
            let ask = "POST /.well-known/app-attest/challenges HTTP/1.1\r\nHost: a\r\n"
            _ = try Self.untilThrottled(burst: 2) {
                try client.send(ask + "Content-Length: 0\r\n\r\n")
                return try client.readResponse()
            }
        }

        @Test func `behind a trusted proxy the client that it names is counted`() throws {
            let more = """
                trusted_proxies: [127.0.0.1]
                limits: { address_connections: 1, address_requests: 1/s, address_burst: 2 }
                """
            let bench = try Bench(more: more)
            defer { bench.stop() }
            // The proxy itself may have as many connections as it likes.
            let proxies = try (0..<4).map { _ in try bench.connect() }
            _ = try Self.untilThrottled(burst: 2) {
                try proxies[0].send(Self.get(for: "192.0.2.1"))
                return try proxies[0].readResponse()
            }
            for number in 2..<10 {
                let other = Self.get(for: "192.0.2.\(number)")
                try expectEqual(Self.statuses(proxies[number % 4], [other]), [200])
            }
            // Two addresses of one /64.
            var host = 0
            _ = try Self.untilThrottled(burst: 2) {
                host += 1
                try proxies[1].send(Self.get(for: "2001:db8::\(host)"))
                return try proxies[1].readResponse()
            }
        }

        @Test(arguments: ["", "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-For: unknown\r\n"])
        func `where a trusted proxy names no client, its own address is limited`(_ field: String)
            throws
        {
            let more = """
                trusted_proxies: [127.0.0.1]
                limits: { address_connections: 1, address_requests: 1/s, address_burst: 2 }
                """
            let bench = try Bench(more: more)
            defer { bench.stop() }
            let proxy = try bench.connect()
            _ = try Self.untilThrottled(burst: 2) {
                try proxy.send("GET / HTTP/1.1\r\nHost: a\r\n\(field)\r\n")
                return try proxy.readResponse()
            }
            // Its connection is not paused, and it may have another: they carry others too.
            try expectEqual(Self.statuses(proxy, [Self.get(for: "192.0.2.1")]), [200])
            try expectEqual(Self.statuses(bench.connect(), [Self.get(for: "192.0.2.2")]), [200])
        }

        @Test func `what a stranger says of its address changes nothing`() throws {
            let bench = try Bench(more: "limits: { address_requests: 1/s, address_burst: 2 }")
            defer { bench.stop() }
            let client = try bench.connect()
            var host = 0
            _ = try Self.untilThrottled(burst: 2) {
                host += 1
                try client.send(Self.get(for: "192.0.2.\(host % 256)"))
                return try client.readResponse()
            }
        }
    }
}
