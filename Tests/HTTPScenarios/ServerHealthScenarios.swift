import Expectations
import LoopbackKit
import Synchronization
import TestSupport
import Testing

extension Scenarios {
    /// Servers that fail requests or checks, beside one that works.
    struct ServerHealthScenarios {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

        /// Answers every request with the status that is set, and `/health` with another.
        private final class Moody: Sendable {
            let status = Mutex(200)
            let health = Mutex(200)

            var script: TestOrigin.Script {
                { [self] connection in
                    while let request = try connection.nextRequest() {
                        let isCheck = request.target == "/health"
                        let answer = isCheck ? health.withLock { $0 } : status.withLock { $0 }
                        try connection.answer(answer, to: request)
                    }
                }
            }
        }

        private static func gateway(
            _ origins: [TestOrigin],
            _ options: String,
            loops: Int = 1
        ) throws -> TestGateway {
            try TestGateway(
                [("shop", origins.map(\.address))],
                loops: loops,
                originOptions: ", \(options)",
                more: "limits: { pooled: 0 }"
            )
        }

        private static func requests(_ origin: TestOrigin) -> Int {
            origin.requests.count { $0.target == "/" }
        }

        @Test func `a server whose answers fail in a row is passed over by all loops`() throws {
            let moody = Moody()
            moody.status.withLock { $0 = 503 }
            let bad = try TestOrigin(script: moody.script)
            let good = try TestOrigin()
            defer {
                bad.stop()
                good.stop()
            }
            let gateway = try Self.gateway(
                [bad, good],
                "eject: { failures: 3, time: 1h, time_max: 1h }",
                loops: 4
            )
            defer { gateway.stop() }
            let statuses = try (0..<40).map { _ in try gateway.ask(Self.get).status }
            expectEqual(statuses.count { $0 == 503 }, 3)
            expectEqual(Self.requests(bad), 3)
        }

        @Test func `a server that is ejected comes back by itself`() throws {
            let moody = Moody()
            moody.status.withLock { $0 = 502 }
            let bad = try TestOrigin(script: moody.script)
            let good = try TestOrigin()
            defer {
                bad.stop()
                good.stop()
            }
            let gateway = try Self.gateway([bad, good], "eject: { failures: 1, time: 100ms }")
            defer { gateway.stop() }
            try eventually {
                _ = try gateway.ask(Self.get)
                return Self.requests(bad) > 0
            }
            moody.status.withLock { $0 = 200 }
            let isBack = try eventually {
                let status = try gateway.ask(Self.get).status
                expectEqual(status, 200)
                return Self.requests(bad) > 1
            }
            #expect(isBack)
        }

        /// All but the first have a connection that has carried another one.
        @Test func `a server of HTTP/2 that resets each request is passed over`() throws {
            let bad = try TestOrigin { connection in
                let server = try HTTP2Server(connection)
                // INTERNAL_ERROR.
                while let (id, _) = try server.nextRequest() { try server.reset(id, 2) }
            }
            let good = try TestOrigin(script: HTTP2Server.friendly)
            defer {
                bad.stop()
                good.stop()
            }
            let gateway = try TestGateway(
                [("shop", [bad.address, good.address])],
                originOptions: ", http2: on, eject: { failures: 3, time: 1h, time_max: 1h }"
            )
            defer { gateway.stop() }
            let statuses = try (0..<20).map { _ in try gateway.ask(Self.get).status }
            // Those with such a connection are sent once more, to the other server.
            expectEqual(statuses.count { $0 == 200 }, 19)
            expectEqual(Self.requests(bad), 3)
        }

        /// Reads a request and ends.
        private static let dying: TestOrigin.Script = { connection in
            _ = try connection.nextRequest()
        }

        @Test func `a request whose server dies is sent to another one, where it does no harm`()
            throws
        {
            let dying = try TestOrigin(script: Self.dying)
            let good = try TestOrigin()
            defer {
                dying.stop()
                good.stop()
            }
            let options = "retries: { max: 1 }, eject: { failures: 0 }"
            let gateway = try Self.gateway([dying, good], options)
            defer { gateway.stop() }
            for _ in 0..<4 { try expectEqual(gateway.ask(Self.get).status, 200) }
            #expect(Self.requests(dying) > 0)
            let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok"
            let statuses = try (0..<4).map { _ in try gateway.ask(post, method: "POST").status }
            #expect(statuses.contains(502))
        }

        @Test func `tries and waits together take no longer than the total timeout`() throws {
            let silent: TestOrigin.Script = { connection in
                while try connection.nextRequest() != nil {}
            }
            let servers = try (0..<2).map { _ in try TestOrigin(script: silent) }
            defer { for server in servers { server.stop() } }
            let options = "retries: { max: 5 }, first_byte_timeout: 200ms, total_timeout: 500ms"
            let gateway = try Self.gateway(servers, options)
            defer { gateway.stop() }
            try expectEqual(gateway.ask(Self.get).status, 504)
            let tries = servers.reduce(0) { $0 + Self.requests($1) }
            #expect((2...3).contains(tries))
        }

        @Test func `a server whose checks fail gets nothing until they pass`() throws {
            let moody = Moody()
            let sick = try TestOrigin(script: moody.script)
            let good = try TestOrigin()
            defer {
                sick.stop()
                good.stop()
            }
            let check = "check: { path: /health, interval: 20ms, healthy: 2, unhealthy: 2 }"
            let gateway = try Self.gateway([sick, good], check, loops: 2)
            defer { gateway.stop() }
            moody.health.withLock { $0 = 500 }
            // Until eight requests in a row miss it.
            var missed = 0
            try eventually {
                let before = Self.requests(sick)
                let status = try gateway.ask(Self.get).status
                expectEqual(status, 200)
                missed = Self.requests(sick) == before ? missed + 1 : 0
                return missed == 8
            }
            expectEqual(missed, 8)
            moody.health.withLock { $0 = 200 }
            let before = Self.requests(sick)
            let isBack = try eventually {
                let status = try gateway.ask(Self.get).status
                expectEqual(status, 200)
                return Self.requests(sick) > before
            }
            #expect(isBack)
            let checked = try #require(sick.requests.first { $0.target == "/health" })
            expectEqual(checked.head.all("host"), [sick.address])
        }

        /// Found as: nothing was known of servers before a request had failed.
        @Test func `without a server whose checks pass the answer is 503 at once`() throws {
            let moody = Moody()
            moody.health.withLock { $0 = 500 }
            let sick = try TestOrigin(script: moody.script)
            defer { sick.stop() }
            let gateway = try Self.gateway([sick], "check: { path: /health, interval: 20ms }")
            defer { gateway.stop() }
            var answer = try gateway.ask(Self.get)
            try eventually {
                if answer.status == 200 { answer = try gateway.ask(Self.get) }
                return answer.status != 200
            }
            expectEqual(answer.status, 503)
            #expect(answer.text.contains("origin-down"))
            expectEqual(answer.head.all("retry-after"), ["1"])
            let (count, clock) = (Self.requests(sick), ContinuousClock())
            let time = try clock.measure { _ = try gateway.ask(Self.get) }
            #expect(time < .seconds(10))
            expectEqual(Self.requests(sick), count)
        }

        /// Found as: every request waited for `timeouts.connect` while no server answered connects.
        @Test func `while no server answers connects the answer is 503 at once`() throws {
            let deaf = try (0..<2).map { _ in try DeafPort() }
            let gateway = try TestGateway(
                [("shop", deaf.map(\.address))],
                more: "timeouts: { connect: 5s }"
            )
            defer { gateway.stop() }
            // The first one finds it out.
            try expectEqual(gateway.ask(Self.get).status, 504)
            let clock = ContinuousClock()
            for _ in 0..<3 {
                let began = clock.now
                try expectEqual(gateway.ask(Self.get).status, 503)
                #expect(clock.now - began < .milliseconds(4_500))
            }
            withExtendedLifetime(deaf) {}
        }
    }
}
