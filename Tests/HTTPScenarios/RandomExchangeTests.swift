import Dispatch
import Expectations
import Foundation
import LoopbackKit
import Services
import Synchronization
import TestSupport
import Testing

extension Scenarios {
    /// Exchanges in which each side does what a number says: it answers before it has read, ends or
    /// resets in the middle, stops, or sends byte by byte. A client sends several requests at once.
    ///
    /// One event loop serves them all. So an exchange that it does not leave, or a connection that
    /// it forgets, keeps the others from ending.
    struct RandomExchangeTests {
        private static let environment = ProcessInfo.processInfo.environment

        /// The first exchange, and how many there are.
        private static let first = environment["PORTCULLIS_EXCHANGE"].flatMap(UInt64.init) ?? 1
        private static let count =
            environment["PORTCULLIS_EXCHANGES"].flatMap(Int.init)
            ?? (environment["PORTCULLIS_EXCHANGE"] == nil ? 240 : 1)
        /// The exchanges before one gateway: an origin of HTTP/2 remembers all that it was sent.
        private static let batch = 400
        private static let workers = 6

        /// Times that are over before a side that has stopped goes on.
        private static let shortTimes = """
            timeouts: { head: 500ms, body_idle: 250ms, first_byte: 700ms, response_idle: 800ms,
              idle: 500ms, linger: 300ms, linger_total: 1s, handshake: 500ms }
            """

        enum Version: String, CaseIterable { case http1, http2 }

        @Test(arguments: Version.allCases, Version.allCases)
        func `what is sent arrives, or is cut where a side has ended it`(
            client: Version,
            origin: Version
        ) throws {
            try Self.play(client, origin, mayStall: false)
        }

        @Test(arguments: Version.allCases, Version.allCases)
        func `a side that stops holds up no other exchange, and its own ends`(
            client: Version,
            origin: Version
        ) throws {
            try Self.play(client, origin, mayStall: true)
        }

        private static func play(
            _ clientVersion: Version,
            _ originVersion: Version,
            mayStall: Bool
        ) throws {
            for start in stride(from: 0, to: count, by: batch) {
                let findings = ExchangeFindings()
                let play = RandomOrigin(mayStall: mayStall, findings: findings)
                let script = originVersion == .http1 ? play.script : play.http2Script
                let origin = try TestOrigin(script: script)
                defer { origin.stop() }
                let gateway = try TestGateway(
                    [("shop", [origin.address])],
                    listen: "address: 127.0.0.1:0, http2: on",
                    originOptions: ", eject: { failures: 0 }, http2: "
                        + (originVersion == .http1 ? "off" : "on"),
                    more: mayStall ? shortTimes : ""
                )
                defer { gateway.stop() }
                let client = RandomClient(
                    port: gateway.port,
                    mayStall: mayStall,
                    findings: findings
                )
                let numbers = (0..<min(batch, count - start)).map { first + UInt64(start + $0) }
                let connections = groups(numbers.map { RandomExchange($0, mayStall: mayStall) })
                let next = Atomic(0)
                DispatchQueue.concurrentPerform(iterations: workers) { _ in
                    while true {
                        let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
                        guard index < connections.count else { return }
                        let exchanges = connections[index]
                        do {
                            switch clientVersion {
                            case .http1: try client.play(exchanges)
                            case .http2: try client.playHTTP2(exchanges)
                            }
                        } catch {
                            for exchange in exchanges { findings.note(exchange, "\(error)") }
                        }
                    }
                }
                let found = findings.all
                expectEqual(found, [], "again: PORTCULLIS_EXCHANGE=NUMBER")
                // Nothing is left of them.
                try gateway.server.wait { snapshot in
                    snapshot.loops.allSatisfy { $0.openConnections == 0 }
                        && snapshot.held.memoryBytes == 0
                        && snapshot.held.unsentBytes == 0
                }
            }
        }

        /// One to three exchanges for each connection. One in which the client ends is the last.
        private static func groups(_ exchanges: [RandomExchange]) -> [[RandomExchange]] {
            var (groups, group): ([[RandomExchange]], [RandomExchange]) = ([], [])
            for exchange in exchanges {
                group.append(exchange)
                guard exchange.clientBreak != nil || exchange.number % 3 == 0 else { continue }
                groups.append(group)
                group = []
            }
            return group.isEmpty ? groups : groups + [group]
        }
    }
}
