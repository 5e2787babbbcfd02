import CLinux
import Expectations
import Foundation
import HTTPWire
import LoopbackKit
import Services
import Synchronization
import TestSupport
import Testing
import Verification

@testable import EventLoops
@testable import Gateway
@testable import Proxy

extension Scenarios {
    /// How connections of HTTP/2 end, and what they keep until then.
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
            try expectEqual(client.answer(id).text, "ok")
        }

        @Test func `TLS's end that waits for the socket comes before the connection's`() throws {
            let bench = try Bench(isSecure: true, http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
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

        /// Another address could have the place in the table, and the bytes that are given back.
        @Test func `a request keeps the place of its address when a reload trusts that`() throws {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let id = try client.open(HTTP2Client.post(), ends: false)
            #expect(bench.origin.wait { $0.contains { $0.heads.count == 1 } })
            let text = TestGateway.text(
                [("shop", [bench.origin.address])],
                listen: "address: 127.0.0.1:0, http2: on",
                more: "trusted_proxies: [127.0.0.1/32]"
            )
            try text.write(
                toFile: bench.gateway.folder + "/portcullis.yaml",
                atomically: true,
                encoding: .utf8
            )
            bench.gateway.server.readAgain()
            try bench.gateway.server.wait { $0.configuration.generation == 2 }
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
            let isHeld = try Self.ask(bench.gateway) { connection in
                guard connection.client.entry == nil,
                    case .refused = connection.host.hold(.v4(0x7F00_0001), max: 1)
                else { return false }
                return true
            }
            #expect(isHeld)
            try client.send([7], on: id)
            try expectEqual(client.answer(id).status, 200)
        }
    }
}
