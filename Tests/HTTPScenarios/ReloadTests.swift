import ConfigurationReading
import Dispatch
import EventLoops
import Expectations
import Foundation
import LoopbackKit
import Services
import Synchronization
import Telemetry
import TestSupport
import Testing

@testable import Gateway

extension Scenarios {
    /// A reload that takes long, because a resolver does not answer.
    struct ReloadTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

        /// A resolver that answers each look-up, with the loopback address, when the test says so.
        private final class SlowResolver: Sendable {
            let asked = Gate()
            let answers = Gate()
            let names = Mutex<[String]>([])

            func lookUp(_ name: String, _ port: UInt16) -> [SocketAddress] {
                names.withLock { $0.append(name) }
                asked.open()
                try? answers.pass()
                return SocketAddress(ip: "127.0.0.1", port: port).map { [$0] } ?? []
            }
        }

        private func configure(
            _ gateway: TestGateway,
            _ server: String,
            more: String = ""
        ) throws {
            let text = TestGateway.text(
                [("shop", [server])],
                listen: "address: 127.0.0.1:0",
                more: more
            )
            try text.write(
                toFile: gateway.folder + "/portcullis.yaml",
                atomically: true,
                encoding: .utf8
            )
        }

        private static func rules(_ paths: [String]) -> String {
            let lines = paths.map {
                "  - { id: \($0), match: { path: /\($0) }, origin: shop, mode: off }"
            }
            return "rules:\n" + lines.joined(separator: "\n")
        }

        private func awaitGeneration(_ generation: UInt64, _ server: GatewayServer) throws {
            try server.wait { $0.configuration.generation == generation }
        }

        @Test func `operators are answered and a stop is obeyed while a name is looked up`() throws
        {
            let resolver = SlowResolver()
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway([("shop", [origin.address])]) {
                resolver.lookUp($0, $1)
            }
            try configure(gateway, "slow.test:80")
            gateway.server.readAgain()
            try resolver.asked.pass()
            let began = ContinuousClock.now
            try expectEqual(gateway.server.snapshot().configuration.generation, 1)
            try expectEqual(gateway.ask(Self.get).status, 200)
            gateway.beginStop()
            expectEqual(gateway.exitStatus(), 0)
            // None of it waited until the look-up was given up.
            #expect(began.duration(to: .now) < Resolver.patience)
            resolver.answers.open()
        }

        @Test func `a connection that was in use during a reload is closed, not kept uncounted`()
            throws
        {
            let gate = Gate()
            let origin = try TestOrigin(script: TestOrigin.slow(until: gate))
            defer { origin.stop() }
            let gateway = try TestGateway([("shop", [origin.address])])
            defer { gateway.stop() }
            let wire = try gateway.connect()
            try wire.send(Self.get.replacing("GET /", with: "GET /slow"))
            #expect(origin.wait { $0.flatMap(\.requests).contains { $0.target == "/slow" } })
            try configure(gateway, origin.address)
            gateway.server.readAgain()
            try awaitGeneration(2, gateway.server)
            gate.open()
            try expectEqual(wire.readResponse().status, 200)
            #expect(eventually(within: 20) { origin.connections.first?.isOpen == false })
            wire.close()
        }

        @Test func `the gauge of pooled connections has none from before a reload`() throws {
            let gate = Gate()
            let origin = try TestOrigin(script: TestOrigin.slow(until: gate))
            defer { origin.stop() }
            let gateway = try TestGateway([("shop", [origin.address])])
            defer { gateway.stop() }
            let server = gateway.server
            func pooled(_ snapshot: AdminSnapshot) -> [Int] {
                snapshot.loops.map(\.pooledConnections)
            }
            let wire = try gateway.connect()
            try wire.send(Self.get.replacing("GET /", with: "GET /slow"))
            #expect(origin.wait { $0.flatMap(\.requests).contains { $0.target == "/slow" } })
            try expectEqual(gateway.ask(Self.get).status, 200)
            try server.wait { pooled($0) == [1] }
            try configure(gateway, origin.address)
            server.readAgain()
            try awaitGeneration(2, server)
            try server.wait { pooled($0) == [0] }
            gate.open()
            try expectEqual(wire.readResponse().status, 200)
            #expect(origin.wait { $0.map(\.isOpen) == [false, false] })
            try expectEqual(pooled(server.snapshot()), [0])
            // The next request has a connection of its own, which alone is counted.
            try expectEqual(gateway.ask(Self.get).status, 200)
            try server.wait { pooled($0) == [1] }
            expectEqual(origin.connections.map(\.isOpen), [false, false, true])
            wire.close()
        }

        @Test func `of reloads that are asked for at once the newest files win, one at a time`()
            throws
        {
            let resolver = SlowResolver()
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway([("shop", [origin.address])]) {
                resolver.lookUp($0, $1)
            }
            defer { gateway.stop() }
            try configure(gateway, "first.test:80")
            gateway.server.readAgain()
            try resolver.asked.pass()
            // The files change while they are read, twice; each time a reload is asked for.
            for name in ["second.test", "third.test"] {
                try configure(gateway, "\(name):\(origin.port)")
                gateway.server.readAgain()
            }
            _ = try gateway.server.snapshot()
            expectEqual(resolver.names.withLock { $0 }, ["first.test"])
            resolver.answers.open()
            try resolver.asked.pass()
            resolver.answers.open()
            try awaitGeneration(3, gateway.server)
            expectEqual(resolver.names.withLock { $0 }, ["first.test", "third.test"])
            try expectEqual(gateway.ask(Self.get).status, 200)
        }

        /// Its own head is read again for an answer, and may be too large by then.
        @Test func `a call of Envoy's that is under way outlives tighter limits`() throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let listen = "address: 127.0.0.1:0, decides: ext_authz_grpc"
            let trusted = "trusted_proxies: [127.0.0.1/32]"
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: listen,
                more: trusted
            )
            defer { gateway.stop() }
            let client = try HTTP2Client(try gateway.connect())
            let path = "/envoy.service.auth.v3.Authorization/Check"
            var fields = [("content-type", "application/grpc"), ("te", "trailers")]
            fields += (0..<20).map { ("x-\($0)", "a") }
            let id = try client.open(HTTP2Client.post(path, fields), ends: false)
            // What follows the head is answered, so the head has been read.
            try expectEqual(client.ask(HTTP2Client.get("/")).status, 404)
            let text = TestGateway.text(
                [("shop", [origin.address])],
                listen: listen,
                more: trusted + "\nlimits: { fields: 10 }"
            )
            try text.write(
                toFile: gateway.folder + "/portcullis.yaml",
                atomically: true,
                encoding: .utf8
            )
            gateway.server.readAgain()
            try awaitGeneration(2, gateway.server)
            // It is no message.
            try client.send([0], on: id)
            try expectEqual(client.answer(id).value("grpc-status"), "8")
        }

        @Test func `a request that ends after a reload is counted with its own rule`() throws {
            let gate = Gate()
            let origin = try TestOrigin(script: TestOrigin.slow(until: gate))
            defer { origin.stop() }
            let gateway = try TestGateway(origin, more: Self.rules(["slow", "other"]))
            defer { gateway.stop() }
            let slow = try gateway.connect()
            try slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            try gateway.server.wait { _ in origin.requests.contains { $0.target == "/slow" } }
            try configure(gateway, origin.address, more: Self.rules(["other", "slow"]))
            gateway.server.readAgain()
            try awaitGeneration(2, gateway.server)
            gate.open()
            try expectEqual(slow.readFinalResponse(to: "GET").status, 200)
            let snapshot = try gateway.server.snapshot()
            func counted(_ id: String) throws -> [UInt64] {
                let number = try #require(snapshot.rules.firstIndex { $0.id == id })
                let tally = snapshot.tally
                return [tally.times(.request, rule: number), tally.times(.origin, rule: number)]
                    .map(\.count)
            }
            try expectEqual(counted("slow"), [1, 1])
            try expectEqual(counted("other"), [0, 0])
        }

        @Test func `a page that is asked for before a reload has the counts of its own rules`()
            throws
        {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(origin, more: Self.rules(["first", "second"]))
            defer { gateway.stop() }
            let server = gateway.server
            try expectEqual(gateway.ask("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").status, 200)
            try server.wait { $0.tally.times(.request, rule: 0).count == 1 }
            // The event loop is busy: its counts come when the reload has ended.
            let (busy, told) = (Gate(), Gate())
            let found = Mutex<AdminSnapshot?>(nil)
            server.plane.loops[0].loop.perform { try? busy.pass() }
            server.gather { snapshot in
                found.withLock { $0 = snapshot }
                told.open()
            }
            server.plane.queue.sync {}
            try configure(gateway, origin.address, more: Self.rules(["second", "first"]))
            server.readAgain()
            #expect(eventually { server.plane.queue.sync { server.reloads.generation } == 2 })
            busy.open()
            try told.pass()
            let snapshot = try #require(found.withLock { $0 })
            let number = try #require(snapshot.rules.firstIndex { $0.id == "first" })
            expectEqual(snapshot.tally.times(.request, rule: number).count, 1)
        }

        @Test(.enabled(if: ChildProcess.tool("openssl") != nil))
        func `clients resume their TLS sessions after a reload`() throws {
            let bench = try Bench(isSecure: true)
            defer { bench.stop() }
            let openssl = try #require(ChildProcess.tool("openssl"))
            let session = bench.gateway.folder + "/session.pem"
            // TLS 1.2 gives its ticket within the handshake, so that a client that goes at once has
            // it. Both versions have the same keys for tickets.
            func connect(_ option: String) throws -> String {
                let address = "127.0.0.1:\(bench.gateway.port)"
                let arguments = ["s_client", "-connect", address, "-tls1_2", option, session]
                return try ChildProcess.run(openssl, arguments).printed
            }
            #expect(try connect("-sess_out").contains("New, TLSv1"))
            #expect(try connect("-sess_in").contains("Reused, TLSv1"))
            for generation in 2...3 {
                bench.gateway.server.readAgain()
                try awaitGeneration(UInt64(generation), bench.gateway.server)
                #expect(try connect("-sess_in").contains("Reused, TLSv1"))
            }
        }

        @Test func `a resolver that does not answer is waited for as long as was said`() throws {
            let gate = Gate()
            var resolver = Resolver { _, _ in
                try? gate.pass()
                return []
            }
            resolver.patience = .milliseconds(50)
            let slow = ServerAddress.name("slow.test", port: 80)
            expectEqual(resolver.addresses(of: [slow]), [slow: .noAnswer])
            gate.open()
        }
    }
}
