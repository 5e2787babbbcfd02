import AppAttest
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Sessions where several gateways share a database: what each of them admits.
    @Suite struct FleetSessions {
        private static let rules = """
            - id: chat
              match: { path: /chat/** }
              mode: enforce
              accept: [assertion, session]
              counter: { window: 64 }
            """
        private static let signing = SigningForm.lines(.all, headers: [])

        /// A request of a session, as it is captured.
        private struct Captured {
            let target: String
            let fields: [(name: String, value: String)]
        }

        private func open(_ fleet: Fleet, _ number: Int, _ key: inout SoftwareKey) throws
            -> SoftwareSession
        {
            let gateway = try #require(fleet.gateway(number))
            let answer = try gateway.post(
                "/.well-known/app-attest/sessions",
                by: &key,
                gateway.client(),
                signing: Self.signing
            )
            #expect(answer.object?["accepts_key_id"] as? Bool == true)
            return try #require(SoftwareSession(answer: answer.body), "\(answer.text)")
        }

        private func captured(
            _ session: inout SoftwareSession,
            _ name: String,
            of keyID: KeyID
        ) throws -> Captured {
            let request = SoftwareKey.Request(method: "GET", target: "/chat/\(name)")
            let next = session.proof(of: request, signing: Self.signing)
            var proof = try #require(next)
            proof.keyID = keyID.base64
            return Captured(target: request.target, fields: proof.fields)
        }

        private func send(_ captured: Captured, to gateway: GatewayProcess) throws -> Answer {
            try gateway.client().send("GET", captured.target, captured.fields)
        }

        /// What all gateways answer to all of these, and whether the origin got any.
        private func replay(_ fleet: Fleet, _ all: [Captured]) throws -> [String] {
            var reasons: [String] = []
            for number in 0..<fleet.count {
                let gateway = try #require(fleet.gateway(number))
                for captured in all {
                    let answer = try send(captured, to: gateway)
                    expectEqual(answer.status, 401, "\(captured.target) at \(number)")
                    reasons.append(answer.reason)
                }
            }
            return reasons
        }

        // MARK: Replays

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a captured request of a session is executed at most once, at whatever gateway`()
            throws
        {
            let fleet = try Fleet(3, rules: Self.rules)
            defer { fleet.end() }
            var key = try fleet.imported(1)[0]
            let keyID = key.keyID
            // Until the balancer sends the key elsewhere, its session is at the first gateway.
            var first = try open(fleet, 0, &key)
            let sent = try (0..<3).map { try captured(&first, "first-\($0)", of: keyID) }
            let unsent = try captured(&first, "first-unsent", of: keyID)
            let home = try #require(fleet.gateway(0))
            for captured in sent { try expectEqual(send(captured, to: home).status, 200) }
            for number in 1..<3 {
                let gateway = try #require(fleet.gateway(number))
                for captured in sent + [unsent] {
                    try expectEqual(send(captured, to: gateway).reason, "session-unknown")
                }
                let metrics = try Metrics(gateway.adminClient())
                expectEqual(metrics["sessions_foreign_total"], 4)
            }
            // The first gateway is gone, and the client goes on at the second.
            home.child.signal(SIGSTOP)
            var second = try open(fleet, 1, &key)
            let other = try #require(fleet.gateway(1))
            let more = try (0..<3).map { try captured(&second, "second-\($0)", of: keyID) }
            for captured in more { try expectEqual(send(captured, to: other).status, 200) }
            // It was only away: its session is still there, with what was used of it.
            home.child.signal(SIGCONT)
            try expectEqual(awaited(unsent, at: home), 200)
            let again = try replay(fleet, sent + more + [unsent])
            let replayed = again.filter { $0 == "session-replayed" }
            expectEqual(replayed.count, 7)
            expectEqual(again.count { $0 == "session-unknown" }, 14)
            // After a crash it is there no more, used or not.
            let last = try captured(&first, "first-last", of: keyID)
            try fleet.crash(0)
            try fleet.start(0)
            let afterCrash = try replay(fleet, sent + more + [unsent, last])
            expectEqual(afterCrash.count { $0 == "session-replayed" }, 3)
            expectEqual(afterCrash.count { $0 == "session-unknown" }, 21)
            let targets = fleet.origin.seen.map(\.target).sorted()
            expectEqual(targets, (sent + more + [unsent]).map(\.target).sorted())
            print("fleet sessions: \(again.count + afterCrash.count) replays, none executed")
        }

        /// The status of the request, once the gateway has heard from the database again. What is
        /// answered before uses no number.
        private func awaited(_ captured: Captured, at gateway: GatewayProcess) throws -> Int {
            var status = 503
            try eventually {
                status = try send(captured, to: gateway).status
                return status != 503
            }
            return status
        }

        // MARK: Revocations

        /// Why a gateway does not hear of a revocation.
        enum Deafness: CaseIterable, Sendable {
            case none
            /// Nothing passes between the gateway and the database.
            case silent
            /// The same, and the gateway does not run while the key is revoked.
            case silentAndPaused
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `no gateway admits a session of a key from when its revocation returned`() throws {
            // A gateway for each way, and a key whose session is there.
            let ways = Deafness.allCases
            let fleet = try Fleet(ways.count, rules: Self.rules)
            defer { fleet.end() }
            var keys = try fleet.imported(ways.count)
            let ids = keys.map(\.keyID)
            let gateways = try ways.indices.map { try #require(fleet.gateway($0)) }
            var sessions: [SoftwareSession] = []
            for (number, gateway) in gateways.enumerated() {
                sessions.append(try open(fleet, number, &keys[number]))
                let before = try captured(&sessions[number], "before-\(number)", of: ids[number])
                try expectEqual(send(before, to: gateway).status, 200)
            }
            for (number, way) in ways.enumerated() {
                if way != .none { try fleet.cables[number].turn(.silent) }
                if way == .silentAndPaused { gateways[number].child.signal(SIGSTOP) }
            }
            // Each command takes three seconds.
            let revocations = ids.map { id in
                Thread.Answer { try fleet.keys("revoke", id.base64) }
            }
            for revocation in revocations { _ = try revocation.value() }
            for (number, way) in ways.enumerated() {
                gateways[number].child.signal(SIGCONT)
                let after = try captured(&sessions[number], "after-\(number)", of: ids[number])
                let answer = try send(after, to: gateways[number])
                let expected = way == .none ? [403] : [403, 503]
                #expect(expected.contains(answer.status), "\(way): \(answer.reason)")
                try fleet.cables[number].turn(.whole)
                try expectEqual(awaited(after, at: gateways[number]), 403, "\(way)")
            }
            let targets = fleet.origin.seen.map(\.target)
            expectEqual(targets, ways.indices.map { "/chat/before-\($0)" })
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a gateway that hears nothing admits no session, and goes on by itself`() throws {
            let fleet = try Fleet(2, rules: Self.rules)
            defer { fleet.end() }
            var key = try fleet.imported(1)[0]
            let keyID = key.keyID
            var session = try open(fleet, 0, &key)
            let gateway = try #require(fleet.gateway(0))
            try fleet.cables[0].turn(.silent)
            var number = 0
            let cut = ContinuousClock.now
            while true {
                number += 1
                let answer = try send(captured(&session, "\(number)", of: keyID), to: gateway)
                guard answer.status == 200 else {
                    expectEqual(answer.reason, "store-unavailable")
                    break
                }
                // Three seconds, and what the machine is slower than that.
                let time = ContinuousClock.now - cut
                try #require(time < .seconds(30), "\(number) requests in \(time)")
            }
            print("fleet sessions: no request admitted \(ContinuousClock.now - cut) after the cut")
            try fleet.cables[0].turn(.whole)
            let later = try captured(&session, "later", of: keyID)
            try expectEqual(awaited(later, at: gateway), 200)
        }
    }
}
