import CLinux
import LoopbackKit
import Synchronization
import TestSupport
import Testing

@testable import EventLoops
@testable import Gateway
@testable import Proxy

extension Scenarios {
    /// How connections of HTTP/2 end while bytes wait for their clients.
    struct HTTP2EndTests {
        /// Asks the only connection of a gateway, on its event loop; `false` where it has ended.
        private static func ask(
            _ gateway: TestGateway,
            _ body: @escaping @Sendable (HTTP2Connection) -> Bool
        ) throws -> Bool {
            let unit = try #require(gateway.server.plane.loops.first)
            let asked = Gate()
            let answer = Atomic<Bool>(false)
            unit.loop.perform {
                for client in unit.bound.value.proxy.connections.clients.values {
                    guard let connection = client as? HTTP2Connection else { continue }
                    answer.store(body(connection), ordering: .relaxed)
                }
                asked.open()
            }
            try asked.pass()
            return answer.load(ordering: .relaxed)
        }

        @Test func `the last response of a drain reaches a client that is slow`() throws {
            let gate = Gate()
            let bench = try Bench(
                http2: true,
                more: "timeouts: { linger: 50ms, drain_idle: 50ms }",
                script: TestOrigin.slow(until: gate)
            )
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let id = try client.open(HTTP2Client.get("/slow"))
            #expect(bench.origin.wait { $0.contains { $0.heads.count == 1 } })
            bench.gateway.beginStop()
            try client.readUntil { client.goAways.count == 2 }
            // As if the client's system took no byte.
            let isStopped = try Self.ask(bench.gateway) { connection in
                connection.isWritable = false
                return true
            }
            #expect(isStopped)
            gate.open()
            #expect(try eventually { try Self.ask(bench.gateway) { $0.unsentBytes > 0 } })
            // Longer than `timeouts.linger`.
            #expect(!client.wire.isReadable(within: 300))
            let goesOn = try Self.ask(bench.gateway) { connection in
                connection.ready(clinux_out)
                return true
            }
            #expect(goesOn)
            #expect(try client.answer(id).text == "ok")
        }

        @Test func `TLS's end that waits for the socket comes before the connection's`() throws {
            let bench = try Bench(isSecure: true, http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            #expect(try client.ask(HTTP2Client.get()).status == 200)
            let waits = try Self.ask(bench.gateway) { connection in
                connection.isWritable = false
                connection.shutDownOutput()
                return connection.unsentBytes > 0
            }
            #expect(waits)
            _ = try Self.ask(bench.gateway) { connection in
                connection.ready(clinux_out)
                return true
            }
            _ = try client.lastCode()
            #expect(client.wire.wasEndedInOrder)
        }
    }
}
