import Expectations
import LoopbackKit
import Testing

extension Scenarios {
    /// Which of several servers gets a request.
    struct BalanceTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

        /// Origins, and a gateway in front of them; each server as the configuration writes it.
        private static func gateway(
            _ servers: [String],
            loops: Int = 1,
            _ options: String = "",
            more: String = "limits: { pooled: 0 }"
        ) throws -> TestGateway {
            try TestGateway(
                [("shop", servers)],
                loops: loops,
                originOptions: options.isEmpty ? "" : ", \(options)",
                more: more
            )
        }

        private static func ask(_ gateway: TestGateway, times: Int) throws -> [Int] {
            try (0..<times).map { _ in try gateway.ask(get).status }
        }

        @Test func `a server with twice the weight gets twice the requests`() throws {
            let origins = try (0..<2).map { _ in try TestOrigin() }
            defer { for origin in origins { origin.stop() } }
            let gateway = try Self.gateway([
                "{ address: \"\(origins[0].address)\", weight: 2 }", origins[1].address,
            ])
            defer { gateway.stop() }
            try expectEqual(Self.ask(gateway, times: 9), Array(repeating: 200, count: 9))
            expectEqual(origins.map(\.requests.count), [6, 3])
        }

        @Test func `a backup gets requests only while no other server is up`() throws {
            let origins = try (0..<2).map { _ in try TestOrigin() }
            defer { for origin in origins { origin.stop() } }
            let refusing = try RefusingPort()
            let backup = "{ address: \"\(origins[1].address)\", backup: true }"
            let working = try Self.gateway([backup, origins[0].address])
            defer { working.stop() }
            try expectEqual(Self.ask(working, times: 4), [200, 200, 200, 200])
            expectEqual(origins.map(\.requests.count), [4, 0])
            let failing = try Self.gateway([backup, refusing.address])
            defer { failing.stop() }
            try expectEqual(Self.ask(failing, times: 3), [200, 200, 200])
            expectEqual(origins.map(\.requests.count), [4, 3])
            withExtendedLifetime(refusing) {}
        }

        private func awaitRest(of origin: TestOrigin, _ gateway: TestGateway) throws {
            for _ in 0..<100_000 {
                let lines = try gateway.askOperators("/origins").text.split(separator: "\n")
                let line = lines.first { $0.contains(origin.address) }
                if line?.contains("\t0 active") == true { return }
            }
            Issue.record("\(origin.address) has requests")
        }

        /// The requests that count are those of all event loops: an event loop alone would see
        /// none.
        @Test func `the server with the fewest requests of all loops is asked`() throws {
            let gate = Gate()
            let slow = try TestOrigin { connection in
                while let request = try connection.nextRequest() {
                    try gate.pass()
                    try connection.answer(200, to: request)
                }
            }
            let quick = try TestOrigin()
            defer {
                slow.stop()
                quick.stop()
            }
            let gateway = try Self.gateway(
                [slow.address, quick.address],
                loops: 4,
                "balance: least-requests",
                more: "limits: { pooled: 0 }\nadmin: { address: 127.0.0.1:0 }"
            )
            defer { gateway.stop() }
            // Until the slow server has a request, one after the other.
            let waiting = try gateway.connect()
            repeat {
                try waiting.send(Self.get)
                // The quick server answers; the slow one holds the request.
                while slow.heads == 0, !waiting.isReadable(within: 10) {}
                if slow.heads == 0 { try expectEqual(waiting.readResponse().status, 200) }
            } while slow.heads == 0
            let before = quick.requests.count
            for _ in 0..<12 {
                // An event loop counts a request as over a moment after its client has the
                // response.
                try awaitRest(of: quick, gateway)
                try expectEqual(gateway.ask(Self.get).status, 200)
            }
            expectEqual(slow.requests.count, 1)
            expectEqual(quick.requests.count, before + 12)
            gate.open()
            try expectEqual(waiting.readResponse().status, 200)
        }

        @Test func `an address is served by one server, and by another when that is gone`() throws {
            let origins = try (0..<4).map { _ in try TestOrigin() }
            defer { for origin in origins { origin.stop() } }
            let gateway = try Self.gateway(
                origins.map(\.address),
                loops: 2,
                "balance: hash-address",
                more: "limits: { pooled: 0 }\ntrusted_proxies: [127.0.0.0/8]"
            )
            defer { gateway.stop() }
            func ask(for host: Int) throws {
                let request = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.\(host)\r\n\r\n"
                try expectEqual(gateway.ask(request).status, 200)
            }
            func counts() -> [Int] { origins.map(\.requests.count) }
            var chosen: [Int] = []
            for host in 0..<12 {
                let before = counts()
                for _ in 0..<3 { try ask(for: host) }
                let grown = zip(counts(), before).map { $0 - $1 }
                expectEqual(grown.sorted(), [0, 0, 0, 3])
                chosen.append(grown.firstIndex(of: 3) ?? -1)
            }
            #expect(Set(chosen).count > 1)
            origins[chosen[0]].stop()
            for host in 0..<12 {
                let before = counts()
                try ask(for: host)
                let place = zip(counts(), before).map { $0 - $1 }.firstIndex(of: 1)
                if chosen[host] == chosen[0] {
                    #expect(place != chosen[0])
                } else {
                    expectEqual(place, chosen[host])
                }
            }
        }
    }
}

extension TestOrigin {
    /// How many requests have come to it.
    fileprivate var heads: Int { connections.reduce(0) { $0 + $1.heads.count } }
}
