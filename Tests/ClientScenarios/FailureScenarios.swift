import ClientKit
import Foundation
import LoopbackKit
import PortcullisClient
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// Each scripted failure, with keys made, attestations requested and what comes of it.
    @Suite struct Failures {
        /// The guide has the table.
        private static let guide = URL(filePath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Sources/client/PortcullisClient/PortcullisClient.docc/Failures.md")

        private static let head = """
            | What fails | Keys made | Attestations requested | The request |
            |---|---|---|---|

            """

        @Test func `each scripted failure costs what the guide's table says`() async throws {
            var table = Self.head
            for failure in FailureCase.all { table += try await row(failure) + "\n" }
            let text = try String(contentsOf: Self.guide, encoding: .utf8)
            if !text.contains(table) {
                Issue.record("the guide's table is another; what was measured:\n\(table)")
            }
        }

        private func row(_ failure: FailureCase) async throws -> String {
            let stand = try ClientStand(clock: ShiftedClock(isFrozen: true))
            defer { stand.end() }
            try failure.script(stand)
            var outcome = try await outcome(stand)
            if let later = failure.later {
                try later(stand)
                outcome = try await self.outcome(stand)
            }
            let cost = stand.cost
            return "| \(failure.name) | \(cost.keys) | \(cost.attestations) | \(outcome) |"
        }

        /// Sends a request, and again as long as something holds it, up to ten times. Time stands
        /// still but for what is waited.
        private func outcome(_ stand: ClientStand) async throws -> String {
            let app = try stand.app()
            let waiting = WaitingTime(app, stand.clock)
            for round in 0..<10 {
                let answer = try await app.send(stand.request("GET", "/orders/1"))
                let seconds = waiting.seconds
                switch answer.proof {
                case .assertion, .session:
                    #expect(answer.statusCode == 200)
                    if round > 0 { return "without proof; proven \(Self.text(seconds)) later" }
                    return seconds > 0 ? "waits \(Self.text(seconds)), then proven" : "proven"
                case .none(.enrolmentHeld(let hold)):
                    // A wait that is too long for a request.
                    await waiting.awaitEnd(of: hold)
                case .none(.enrolling):
                    // The wait for the enrolment ended together with what held the enrolment.
                    continue
                case .none(.serviceFailed): return "without proof: `serviceFailed`"
                case .none(let absence): return "without proof: `\(absence)`"
                }
            }
            return "without proof"
        }

        private static func text(_ seconds: Double) -> String {
            let seconds = (seconds * 10).rounded() / 10
            return "\(seconds) s"
        }
    }
}
