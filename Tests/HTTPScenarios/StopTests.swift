import Dispatch
import Expectations
import Foundation
import Glibc
import LoopbackKit
import TestSupport
import Testing

@testable import Gateway

extension Scenarios {
    struct StopTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        /// For idle clients whose end is waited for: a second by default.
        private static let drainIdle = "timeouts: { drain_idle: 100ms }"

        /// Waits until no listener accepts any more.
        private func awaitListenerEnd(_ gateway: TestGateway) -> Bool {
            eventually {
                guard let client = try? gateway.connect() else { return true }
                _ = try? client.endsSilently()
                return false
            }
        }

        @Test func `the request under way is finished, idle connections close, the status is 0`()
            throws
        {
            let gate = Gate()
            let origin = try TestOrigin(script: TestOrigin.slow(until: gate))
            defer { origin.stop() }
            let gateway = try TestGateway(origin, more: Self.drainIdle)
            let (idle, busy) = (try gateway.connect(), try gateway.connect())
            try idle.send(Self.get)
            try expectEqual(idle.readResponse().status, 200)
            try busy.send(Self.get.replacing("GET /", with: "GET /slow"))
            #expect(origin.wait { $0.flatMap(\.requests).contains { $0.target == "/slow" } })
            gateway.beginStop()
            #expect(try idle.endsSilently())
            #expect(awaitListenerEnd(gateway))
            gate.open()
            try expectEqual(busy.readResponse().text, "ok")
            #expect(try busy.endsSilently())
            busy.close()
            idle.close()
            expectEqual(gateway.exitStatus(), 0)
        }

        @Test func `connections that were kept for an origin end before the gateway does`() throws {
            let gate = Gate()
            let origin = try TestOrigin(script: TestOrigin.slow(until: gate))
            defer { origin.stop() }
            let gateway = try TestGateway(origin)
            let (first, second) = (try gateway.connect(), try gateway.connect())
            try second.send(Self.get.replacing("GET /", with: "GET /slow"))
            #expect(origin.wait { $0.count == 1 && $0[0].requests.count == 1 })
            try first.send(Self.get)
            try expectEqual(first.readResponse().status, 200)
            gateway.beginStop()
            #expect(origin.wait { $0.count == 2 && !$0[1].isOpen && $0[0].isOpen })
            gate.open()
            try expectEqual(second.readResponse().text, "ok")
            expectEqual(gateway.exitStatus(), 0)
        }

        @Test func `content under way is taken to its end`() throws {
            let bench = try Bench(more: Self.drainIdle)
            defer { bench.origin.stop() }
            let client = try bench.connect()
            try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
            #expect(bench.origin.wait { $0.first?.heads.count == 1 })
            let idle = try bench.connect()
            bench.gateway.beginStop()
            #expect(try idle.endsSilently())
            try client.send("world")
            try expectEqual(client.readResponse().status, 200)
            #expect(try client.endsSilently())
            client.close()
            expectEqual(bench.gateway.exitStatus(), 0)
        }

        @Test func `a response that a slow client has not taken yet is not lost`() throws {
            let body = String(repeating: "x", count: 120_000)
            let bench = try Bench(more: Self.drainIdle) { connection in
                while let request = try connection.nextRequest() {
                    try connection.answer(200, body: body, to: request)
                }
            }
            defer { bench.origin.stop() }
            let client = try bench.connect()
            // One request after the other without reading, until one is not served any more: the
            // response before it waits in the gateway's memory.
            var sent = 0
            repeat {
                try client.send(Self.get)
                sent += 1
                let wanted = sent
                guard
                    bench.origin.wait(
                        milliseconds: 300,
                        until: {
                            $0.flatMap(\.requests).count == wanted
                        }
                    )
                else { break }
            } while sent < 1_000
            let idle = try bench.connect()
            bench.gateway.beginStop()
            #expect(try idle.endsSilently())
            for _ in 1..<sent { try expectEqual(client.readResponse().body.count, body.utf8.count) }
            client.close()
            expectEqual(bench.gateway.exitStatus(), 0)
        }

        @Test func `what has not ended in time is cut off`() throws {
            let timeouts = "timeouts: { drain: 200ms }"
            let bench = try Bench(more: timeouts) { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send("HTTP/1.1 200 OK\r\n\r\nhello")
                try connection.awaitEnd()
            }
            defer { bench.origin.stop() }
            let client = try bench.connect()
            try client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
            _ = try client.readHead()
            bench.gateway.beginStop()
            // Its end is that of the connection, so an orderly one would look whole.
            #expect(throws: WireFault.reset) { try client.readToEnd() }
            expectEqual(bench.gateway.exitStatus(), 0)
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
        }

        @Test func `a tunnel ends with the time to drain`() throws {
            let bench = try Bench(more: "timeouts: { drain: 200ms }") { connection in
                if try connection.agreeToTunnel() { try connection.awaitEnd() }
            }
            defer { bench.origin.stop() }
            let client = try bench.connect()
            try client.openTunnel()
            bench.gateway.beginStop()
            #expect(try client.endsSilently())
            expectEqual(bench.gateway.exitStatus(), 0)
        }

        @Test func `a reload moves new requests, and one under way keeps its origin`() throws {
            let origins = try ["aside", "old", "new"].map { name in
                try TestOrigin { connection in
                    while let request = try connection.nextRequest() {
                        try connection.answer(200, body: name, to: request)
                    }
                }
            }
            let deaf = try DeafPort()
            defer { for origin in origins { origin.stop() } }
            let (aside, old, new) = (origins[0], origins[1], origins[2])
            let gateway = try TestGateway(
                [("aside", [aside.address]), ("shop", [deaf.address, old.address])],
                fallback: "{ origin: shop, mode: off }",
                watchesSignals: true,
                more: """
                    rules: [{ id: aside, match: { path: /aside }, origin: aside, mode: off }]
                    timeouts: { connect: 600ms }
                    """
            )
            defer {
                gateway.stop()
                _ = gateway.exitStatus()
                for number in [SIGHUP, SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2] {
                    signal(number, SIG_DFL)
                }
            }
            let client = try gateway.connect()
            try client.send(Self.get)
            // Served behind it on the same event loop: the request above is on its way to the deaf
            // one.
            let other = Self.get.replacing("GET /", with: "GET /aside")
            try expectEqual(gateway.ask(other).text, "aside")
            let text = TestGateway.text(
                [("shop", [new.address])],
                listen: "address: 127.0.0.1:0"
            )
            try text.write(
                toFile: gateway.folder + "/portcullis.yaml",
                atomically: true,
                encoding: .utf8
            )
            kill(getpid(), SIGHUP)
            var answer = ""
            try eventually {
                answer = try gateway.ask(other).text
                return answer == "new"
            }
            expectEqual(answer, "new")
            try expectEqual(client.readResponse().text, "old")
            try client.send(Self.get)
            try expectEqual(client.readResponse().text, "new")
            withExtendedLifetime(deaf) {}
        }

        @Test(arguments: [SIGTERM, SIGHUP])
        func `a signal that comes before signals are watched is obeyed`(_ number: Int32) throws {
            defer {
                for number in [SIGHUP, SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2] {
                    signal(number, SIG_DFL)
                }
            }
            // To this thread alone: gateways of other tests may still watch the process.
            var open = sigset_t()
            sigemptyset(&open)
            sigaddset(&open, number)
            var before = sigset_t()
            pthread_sigmask(SIG_UNBLOCK, &open, &before)
            SignalWatch.noteRequests()
            SignalWatch.noteStops()
            pthread_kill(pthread_self(), number)
            pthread_sigmask(SIG_SETMASK, &before, nil)
            let obeyed = Gate()
            let watch = SignalWatch(on: DispatchQueue(label: "signals"), ready: {}) { request in
                switch request {
                case .stop: if number == SIGTERM { obeyed.open() }
                case .reload: if number == SIGHUP { obeyed.open() }
                case .reopenLog, .upgrade: break
                }
            }
            try obeyed.pass()
            withExtendedLifetime(watch) {}
        }

        @Test func `a file that does not load changes nothing`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            let gateway = try TestGateway(
                [("shop", [bench.origin.address])],
                watchesSignals: true
            )
            defer {
                gateway.stop()
                _ = gateway.exitStatus()
                for number in [SIGHUP, SIGTERM, SIGINT] { signal(number, SIG_DFL) }
            }
            try "origins: nonsense".write(
                toFile: gateway.folder + "/portcullis.yaml",
                atomically: true,
                encoding: .utf8
            )
            kill(getpid(), SIGHUP)
            for _ in 0..<20 { try expectEqual(gateway.ask(Self.get).text, "ok") }
        }
    }
}
