import Expectations
import Foundation
import LoopbackKit
import PortcullisClient
import PortcullisClientTesting
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension Scenarios {
    /// Apps with PortcullisClient, a load balancer as `deploy/docs/fleet.md` sets it up, two
    /// gateways on one database.
    @Suite(.ofApple) struct FleetBalancers {
        private static let rules = """
            - id: chat
              match: { path: /chat/** }
              mode: enforce
              accept: [assertion, session]
              counter: { window: 64 }
            """
        private static let more = """
            probes: { ready: /readyz }
            enrolment: { rate: 10000/s, burst: 100000 }
            """
        /// So many that each gateway gets one, but for once in 2^19 times.
        private static let appCount = 20

        private struct Crowd {
            let apps: [PortcullisSession]
            let front: URL

            /// Sends a request of each app, one after the other.
            func send(_ name: String) async throws -> [ProvenResponse] {
                var answers: [ProvenResponse] = []
                for (number, app) in apps.enumerated() {
                    let target = front.appending(path: "/chat/\(name)-\(number)")
                    answers.append(try await app.data(for: URLRequest(url: target)).1)
                }
                return answers
            }
        }

        private func crowd(_ authority: TestAuthority, _ port: UInt16) throws -> Crowd {
            guard let front = URL(string: "http://127.0.0.1:\(port)") else {
                throw URLError(.badURL)
            }
            let apps = try (0..<Self.appCount).map { _ in
                var configuration = PortcullisConfiguration(gateway: front)
                configuration.defaultRequirement = SigningRequirement(accepts: [
                    .assertion, .session,
                ])
                return PortcullisSession(
                    configuration,
                    service: try SoftwareAttestationService(
                        appID: Scenario.appID,
                        authority: authority
                    ),
                    store: MemoryEnrolmentStore(),
                    transport: URLSessionTransport()
                )
            }
            return Crowd(apps: apps, front: front)
        }

        private func metric(_ name: String, _ fleet: Fleet) throws -> [Double] {
            try (0..<fleet.count).compactMap { number in
                try fleet.gateway(number).map { try Metrics($0.adminClient())[name] }
            }
        }

        @Test(
            .enabled(if: DatabaseServer.programs != nil),
            arguments: FleetBalancer.allCases
        )
        func `behind a balancer apps keep their sessions, and lose one with its gateway alone`(
            balancer: FleetBalancer
        ) async throws {
            let authority = try TestAuthority()
            let fleet = try Fleet(
                2,
                rules: Self.rules,
                more: Self.more,
                root: authority.rootPEM
            )
            defer { fleet.end() }
            for number in 0..<2 { try fleet.keepPort(number) }
            let ports = (0..<2).compactMap { fleet.gateway($0)?.port }
            guard let port = try balancer.start(fleet.scenario, before: ports) else { return }
            let crowd = try crowd(authority, port)

            // Each app opens one session, and all of its requests find it.
            for round in 0..<5 {
                let answers = try await crowd.send("whole-\(round)")
                #expect(answers.allSatisfy { $0.statusCode == 200 && $0.attempts == 1 })
                #expect(answers.allSatisfy { $0.isOfSession })
            }
            let opened = try metric("sessions_opened_total", fleet)
            expectEqual(opened.reduce(0, +), Double(Self.appCount))
            #expect(opened.allSatisfy { $0 > 0 }, "\(opened)")
            try expectEqual(metric("sessions_foreign_total", fleet), [0, 0])

            // A gateway is gone: its apps go on at the other one.
            try fleet.crash(1)
            let gone = try await crowd.send("gone")
            #expect(gone.allSatisfy { $0.statusCode == 200 }, "\(gone.map(\.statusCode))")
            let settled = try await crowd.send("settled")
            #expect(settled.allSatisfy { $0.statusCode == 200 && $0.isOfSession })

            // It comes back, and so do its apps.
            try fleet.start(1)
            var round = 0
            let isBack = try await eventually {
                if try metric("sessions_opened_total", fleet)[1] >= opened[1] { return true }
                round += 1
                let answers = try await crowd.send("back-\(round)")
                #expect(answers.allSatisfy { $0.statusCode == 200 })
                return false
            }
            try #require(isBack, "no app came back in \(round) rounds")
            let last = try await crowd.send("last")
            #expect(last.allSatisfy { $0.statusCode == 200 && $0.attempts == 1 && $0.isOfSession })

            let targets = fleet.origin.seen.map(\.target)
            expectEqual(Set(targets).count, targets.count)
            expectEqual(targets.count, Self.appCount * (8 + round))
            print(
                "\(balancer.rawValue): \(targets.count) requests of \(Self.appCount) apps, all "
                    + "answered 200; sessions opened \(opened), after the return "
                    + "\(try metric("sessions_opened_total", fleet))"
            )
            for app in crowd.apps { await app.close() }
        }

        private static let mixed = """
            - id: open
              match: { path: /open }
              mode: off
            - id: watched
              match: { path: /watched }
              mode: observe
              sign: [method, target]
            - id: guarded
              match: { path: /guarded }
              mode: enforce
              sign: [method, target]
            """

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a database that is stopped takes only what must be verified with it`() throws {
            let fleet = try Fleet(2, rules: Self.mixed, more: Self.more)
            defer { fleet.end() }
            let gateways = try (0..<2).map { try #require(fleet.gateway($0)) }
            let balancer = FleetBalancer.haproxy
            let ports = gateways.map(\.port)
            guard let port = try balancer.start(fleet.scenario, before: ports) else { return }
            let front = HTTPClient(port: port)
            var key = try fleet.imported(1)[0]
            func guarded() throws -> Answer {
                let request = SoftwareKey.Request(method: "GET", target: "/guarded")
                let signing = SigningForm.lines([.method, .target], headers: [])
                return try front.send(request, key.proof(of: request, signing: signing))
            }
            try expectEqual(guarded().status, 200)
            try fleet.database.crash()
            let admins = try gateways.map { try $0.adminClient() }
            var before: [Double] = []
            for (gateway, admin) in zip(gateways, admins) {
                try gateway.waitUntil("a store that fails", admin) {
                    $0["store_degraded"] == 1
                }
                let ready = try admin.send("GET", "/readyz")
                expectEqual(ready.status, 200)
                expectEqual(ready.text, "ready\ndegraded: store-degraded\n")
                before.append(try Metrics(admin)["requests_total"])
            }
            // HAProxy has probed more often than it takes to give a server up; there are no other
            // requests.
            for (number, gateway) in gateways.enumerated() {
                try gateway.waitUntil("three probes", admins[number]) {
                    $0["requests_total"] >= before[number] + 3
                }
            }
            for _ in 0..<4 {
                try expectEqual(front.send("GET", "/open").status, 200)
                try expectEqual(front.send("GET", "/watched").status, 200)
                let answer = try guarded()
                expectEqual(answer.status, 503)
                expectEqual(answer.reason, "store-unavailable")
            }
            try fleet.database.start()
            let isBack = try eventually { try guarded().status == 200 }
            #expect(isBack)
        }
    }
}

extension ProvenResponse {
    fileprivate var isOfSession: Bool {
        if case .session = proof { return true }
        return false
    }
}
