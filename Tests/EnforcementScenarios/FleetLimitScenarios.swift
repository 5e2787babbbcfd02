import Expectations
import LoopbackKit
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Limits that hold for all gateways of a fleet together.
    @Suite struct FleetLimits {
        private static let more = """
            enrolment: { rate: 1/s, burst: 600, per_attester: 6/d }
            limits: { address_failures: off }
            """

        /// The challenges that an address gets which asks each gateway in turn.
        private func flood(_ clients: [HTTPClient], rounds: Int) throws -> Int {
            let call = Array(#"{"purpose":"enrolment","count":8}"#.utf8)
            let path = "/.well-known/app-attest/challenges"
            var taken = 0
            for _ in 0..<rounds {
                for client in clients {
                    let answer = try client.send("POST", path, content: call)
                    taken += (answer.object?["challenges"] as? [String])?.count ?? 0
                }
            }
            return taken
        }

        /// The answers to an enrolment of a new key at each gateway. All have one attester.
        private func enrol(_ fleet: Fleet) throws -> [Int] {
            try (0..<fleet.count).map { number in
                let gateway = try #require(fleet.gateway(number))
                return try gateway.enrol(Scenario.device.makeKey(), gateway.client()).status
            }
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `an address and an attester get about one limit from three gateways`() throws {
            try ClientSide.$current.withValue(.android) {
                let fleet = try Fleet(3, rules: StockRule.list(.bare), more: Self.more)
                defer { fleet.end() }
                for number in 0..<3 {
                    let isSeen = try eventually {
                        try Metrics(fleet.admin(number))["fleet_gateways"] == 3
                    }
                    #expect(isSeen)
                }
                var answers = try (0..<6).flatMap { _ in try enrol(fleet) }
                // Each has two for itself before it has heard of what the others took.
                let isOver = try eventually(within: 20) {
                    let next = try enrol(fleet)
                    answers += next
                    return next == [429, 429, 429]
                }
                #expect(isOver)
                let enrolled = answers.count { $0 == 201 }
                #expect((6...11).contains(enrolled), "\(answers)")

                let clients = try (0..<3).map { number in
                    HTTPClient(port: try #require(fleet.gateway(number)).port, from: 9)
                }
                var taken = try flood(clients, rounds: 60)
                let isStopped = try eventually(within: 20) {
                    let next = try flood(clients, rounds: 1)
                    taken += next
                    return next == 0
                }
                #expect(isStopped)
                print("fleet: \(enrolled) keys of one attester, \(taken) challenges of one address")
                // Half of 600; what three gateways let through before they know of each other may
                // be half as much again, and some come in the time that this takes.
                #expect((200...500).contains(taken), "\(taken)")
                // The other half is for others, at each gateway.
                for number in 0..<3 {
                    let gateway = try #require(fleet.gateway(number))
                    let client = HTTPClient(port: gateway.port, from: 10)
                    let answer = try gateway.askToEnrol(Scenario.device.makeKey(), client)
                    expectEqual(answer.status, 200)
                }
            }
        }
    }
}
