import AppAttest
import Expectations
import Foundation
import KeyStore
import LoopbackKit
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// What a client gets whose key is not on the disk in time.
    @Suite struct EnrolmentWaits {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              sign: [method, target]
            """

        private static func configure(
            _ scenario: Scenario,
            _ origin: RecordingOrigin,
            commit: String
        ) throws {
            try scenario.configure(origin, rules: rules, more: "timeouts: { commit: \(commit) }")
        }

        /// A gateway whose commits can be held up.
        private static func start(
            _ scenario: Scenario
        ) throws -> (gateway: SteppedGateway, journal: FaultyJournal) {
            let journal = FaultyJournal(MemoryJournal())
            let now = Scenario.now.seconds
            return (try SteppedGateway(scenario, at: now, journal: journal), journal)
        }

        private static func register(
            _ key: SoftwareKey,
            _ challenge: String,
            _ client: HTTPClient
        ) throws -> Answer {
            let document = key.enrolment(challenge: challenge, at: Scenario.now)
            return try client.send(
                "POST",
                "/.well-known/app-attest/keys",
                content: Array(document.utf8)
            )
        }

        @Test func `an enrolment does not wait for ever for a commit that does not end`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try Self.configure(scenario, scenario.origin(), commit: "200ms")
            let (gateway, journal) = try Self.start(scenario)
            defer { gateway.stop() }
            let admin = try gateway.adminClient()
            let key = Scenario.device.makeKey()
            let client = gateway.client()
            let challenge = try gateway.challenges("enrolment", client)[0]
            let gate = journal.holdUp()
            var isOpen = false
            defer { if !isOpen { gate.open.signal() } }
            let first = try Self.register(key, challenge, client)
            expectEqual(first.status, 503)
            expectEqual(first.reason, "store-unavailable")
            expectEqual(first.value("App-Attest-Error"), "store-unavailable;next=retry-later")
            #expect(first.value("Retry-After") != nil)
            // The connection goes on, and the same attestation is to be sent again, not a new one.
            let second = try Self.register(key, challenge, client)
            expectEqual(second.status, 503)
            expectEqual(second.reason, "store-unavailable")
            // The commit ends late: the key is enrolled, once, and the client is told so.
            gate.open.signal()
            isOpen = true
            try gateway.waitUntil("the key", admin) { $0["enrolments_total"] == 1 }
            let third = try Self.register(key, challenge, client)
            expectEqual(third.status, 200)
            expectEqual(third.member("key_id"), key.keyID.base64)
            expectEqual(journal.batches.flatMap(\.enrolments).count, 1)
            try expectEqual(Metrics(admin)["enrolments_total"], 1)
        }

        @Test func `an enrolment whose commit fails late may be sent again`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try Self.configure(scenario, scenario.origin(), commit: "200ms")
            let (gateway, journal) = try Self.start(scenario)
            defer { gateway.stop() }
            let key = Scenario.device.makeKey()
            let client = gateway.client()
            let challenge = try gateway.challenges("enrolment", client)[0]
            let gate = journal.holdUp()
            journal.fail(.before(JournalError(.busy, "test")))
            try expectEqual(Self.register(key, challenge, client).status, 503)
            gate.entered.wait()
            journal.fail(nil)
            gate.open.signal()
            // Until the commit has ended, the answer stays the same.
            try gateway.waitUntil("the key", gateway.adminClient()) { _ in
                let answer = try Self.register(key, challenge, client)
                #expect([201, 503].contains(answer.status))
                return answer.status == 201
            }
            expectEqual(journal.batches.flatMap(\.enrolments).count, 2)
        }

        @Test(arguments: [true, false])
        func `a shorter time to wait holds at once, for those who wait already too`(
            isWaiting: Bool
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try Self.configure(scenario, origin, commit: "1h")
            let (gateway, journal) = try Self.start(scenario)
            defer { gateway.stop() }
            let key = Scenario.device.makeKey()
            let client = gateway.client()
            // The alarm is set for the longer time.
            try expectEqual(gateway.enrol(Scenario.device.makeKey(), client).status, 201)
            let challenge = try gateway.challenges("enrolment", client)[0]
            let gate = journal.holdUp()
            defer { gate.open.signal() }
            func begin() -> Thread.Answer<Answer> {
                Thread.Answer { try Self.register(key, challenge, client) }
            }
            let earlier = isWaiting ? begin() : nil
            if isWaiting { gate.entered.wait() }
            try Self.configure(scenario, origin, commit: "100ms")
            gateway.reload()
            try gateway.waitUntil("a reload", gateway.adminClient()) {
                $0["configuration_generation"] == 2
            }
            try expectEqual((earlier ?? begin()).value().reason, "store-unavailable")
        }
    }
}
