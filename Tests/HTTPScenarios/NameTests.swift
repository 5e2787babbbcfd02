import ConfigurationReading
import EventLoops
import Expectations
import Foundation
import LoopbackKit
import Services
import Synchronization
import Testing

@testable import Gateway

extension Scenarios {
    /// Names of servers that get an address late, move, or lose it.
    struct NameTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

        /// A resolver that answers what the test says.
        private final class ToldResolver: Sendable {
            let answer = Mutex<[String]>([])

            func lookUp(_ name: String, _ port: UInt16) -> [SocketAddress] {
                answer.withLock { $0 }.compactMap { SocketAddress(ip: $0, port: port) }
            }
        }

        private static var quickly: LookUpPace {
            var pace = LookUpPace()
            (pace.first, pace.longest) = (.milliseconds(20), .milliseconds(40))
            return pace
        }

        /// Asks until it is so, or too often. The idle connection of a test must not age meanwhile.
        private static func poll(until isSo: () throws -> Bool) rethrows {
            for _ in 0..<100_000 {
                if try isSo() { return }
            }
        }

        private func unknownServers(_ server: GatewayServer) throws -> [String] {
            let found = Mutex<[String]>([])
            let gate = Gate()
            server.gather { snapshot in
                found.withLock { $0 = snapshot.unknownServers }
                gate.open()
            }
            try gate.pass()
            return found.withLock { $0 }
        }

        @Test
        func `an origin whose name has no address yet is answered 502, and served when it has`()
            throws
        {
            let resolver = ToldResolver()
            let origin = try TestOrigin()
            defer { origin.stop() }
            let name = "late.test:\(origin.port)"
            let gateway = try TestGateway([("shop", [name])], lookUpPace: Self.quickly) {
                resolver.lookUp($0, $1)
            }
            defer { gateway.stop() }
            let refused = try gateway.ask(Self.get)
            expectEqual(refused.status, 502)
            #expect(refused.text.contains("origin-unreachable"))
            try expectEqual(unknownServers(gateway.server), [name])
            resolver.answer.withLock { $0 = ["127.0.0.1"] }
            try Self.poll { try unknownServers(gateway.server).isEmpty }
            try expectEqual(gateway.ask(Self.get).status, 200)
            // What has an address keeps it when the resolver fails.
            resolver.answer.withLock { $0 = [] }
            try expectEqual(unknownServers(gateway.server), [])
            try expectEqual(gateway.ask(Self.get).status, 200)
        }

        /// Found as: a name that got one more address closed the idle connections to the others.
        @Test func `an address that stays keeps its connections when the name gets another`() throws
        {
            let resolver = ToldResolver()
            resolver.answer.withLock { $0 = ["127.0.0.1"] }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", ["one.test:\(origin.port)"])],
                more: "admin: { address: 127.0.0.1:0 }",
                lookUpPace: Self.quickly
            ) { resolver.lookUp($0, $1) }
            defer { gateway.stop() }
            try expectEqual(gateway.ask(Self.get).status, 200)
            resolver.answer.withLock { $0 = ["127.0.0.1", "127.0.0.2"] }
            func addresses() throws -> Int {
                let client = try Wire(port: gateway.adminPort)
                try client.send("GET /origins HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return try client.readFinalResponse().text.split(separator: "\n").count
            }
            try Self.poll { try addresses() == 2 }
            try expectEqual(addresses(), 2)
            // The first turn is that of the first address.
            try expectEqual(gateway.ask(Self.get).status, 200)
            expectEqual(origin.connections.count, 1)
        }

        private func configuration(_ servers: String) throws -> GatewayConfiguration {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let file = folder + "/portcullis.yaml"
            let text = TestGateway.text([("shop", [servers])], listen: "address: 127.0.0.1:0")
            try text.write(toFile: file, atomically: true, encoding: .utf8)
            return try #require(ConfigurationLoader.load(file).configuration)
        }

        @Test func `a server is found, moves and is lost, and its last addresses stay`() throws {
            let server = ServerAddress.name("a.test", port: 80)
            let configuration = try configuration("a.test:80")
            let (one, two) = (
                try #require(SocketAddress(ip: "127.0.0.1", port: 80)),
                try #require(SocketAddress(ip: "127.0.0.2", port: 80))
            )
            var registry = ServerRegistry(configuration, Resolver { _, _ in [] })
            expectEqual(registry.unknown(configuration), ["a.test:80"])
            expectEqual(
                registry.problems(configuration).map(\.keyPath),
                ["origins.shop.servers[0]"]
            )
            let steps: [(Resolver.Finding, [ServerRegistry.Change.Kind], count: Int)] = [
                (.none, [], 0), (.addresses([one]), [.found], 1),
                // Resolvers turn the order; that is no move.
                (.addresses([one, two]), [.moved], 2), (.addresses([two, one]), [], 2),
                (.noAnswer, [.lost], 2), (.none, [], 2), (.addresses([two]), [.moved], 1),
            ]
            for (finding, kinds, count) in steps {
                expectEqual(registry.take([server: finding]).map(\.kind), kinds)
                expectEqual((registry.addresses[server] ?? []).count, count)
            }
            #expect(registry.problems(configuration).isEmpty)
            // A reload knows what was known before it.
            let next = ServerRegistry(
                configuration,
                Resolver { _, _ in [] },
                knowing: registry.addresses
            )
            expectEqual(next.unknown(configuration), [])
        }

        @Test func `failed look-ups come ever later, and start anew after a good one`() {
            var pace = LookUpPace()
            (pace.first, pace.longest) = (.seconds(1), .seconds(3))
            let pauses = [false, false, false, true, false].map { pace.next(isComplete: $0) }
            expectEqual(pauses, [1, 2, 3, 3, 1].map(Duration.seconds))
        }
    }
}
