import ClientKit
import Foundation
import LoopbackKit
import PortcullisClient
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// Each failure, once and always: how often the app's request is sent, which keys, attestations
    /// and calls it costs, how long the app waits, and what it gets.
    ///
    ///     PORTCULLIS_RECORD_FAILURES=1 swift test --filter ClientScenarios.Failures
    ///
    /// writes the tables.
    @Suite(.serialized) struct Failures {
        private static let isRecording =
            ProcessInfo.processInfo.environment["PORTCULLIS_RECORD_FAILURES"] != nil

        /// The guide has the tables.
        private static let guide = URL(filePath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Sources/client/PortcullisClient/PortcullisClient.docc/Failures.md")

        private static let head = """
            | What fails | Tries | Keys | Attestations | Calls | Seconds | The app gets |
            |---|---|---|---|---|---|---|

            """

        @Test(.timeLimit(.minutes(10)))
        func `each failure of device, gateway and store costs what the guide's table says`()
            async throws
        {
            try await compare(FailureCase.all, withTable: 0)
        }

        @Test(.timeLimit(.minutes(10)))
        func `each disturbance of each call costs what the guide's table says`() async throws {
            try await compare(FailureCase.disturbances, withTable: 1)
        }

        @Test(.timeLimit(.minutes(10)))
        func `each refusal of the gateway costs what the guide's table says`() async throws {
            try await compare(FailureCase.refusals, withTable: 2)
        }

        private func compare(_ failures: [FailureCase], withTable number: Int) async throws {
            let stand = try ClientStand(rules: ClientStand.ordersAndChat)
            defer { stand.end() }
            var rows: [Row] = []
            for failure in failures {
                let cost = try await cost(of: failure, stand)
                if let same = rows.firstIndex(where: { $0.takes(failure, cost) }) {
                    rows[same].names.append(failure.name)
                } else {
                    rows.append(Row(failure, cost))
                }
            }
            let measured = Row.merged(rows).map { "\($0)\n" }.joined()
            // Each of the guide's tables of costs, with the text that follows it.
            var parts = try String(contentsOf: Self.guide, encoding: .utf8)
                .components(separatedBy: Self.head)
            try #require(parts.count > number + 1)
            let end = try #require(parts[number + 1].range(of: "\n\n")).lowerBound
            let written = parts[number + 1][..<end] + "\n"
            guard written != measured else { return }
            guard Self.isRecording else {
                Issue.record("the guide's table is another; what was measured:\n\(measured)")
                return
            }
            parts[number + 1].replaceSubrange(...end, with: measured)
            let text = parts.joined(separator: Self.head)
            try text.write(to: Self.guide, atomically: true, encoding: .utf8)
        }

        /// A row of the table: failures of one place that cost the same.
        private struct Row: CustomStringConvertible {
            let place: String
            var often: String
            var names: [String]
            /// From the second column on.
            let cost: String

            init(_ failure: FailureCase, _ cost: String) {
                (place, often, names) = (failure.place, failure.often, [failure.name])
                self.cost = cost
            }

            func takes(_ failure: FailureCase, _ cost: String) -> Bool {
                !place.isEmpty
                    && (place, often, self.cost) == (failure.place, failure.often, cost)
            }

            /// Rows that are the same once and always are one.
            static func merged(_ rows: [Row]) -> [Row] {
                rows.reduce(into: []) { merged, row in
                    let same = merged.firstIndex {
                        !row.place.isEmpty
                            && ($0.place, $0.names, $0.cost)
                                == (row.place, row.names, row.cost)
                    }
                    if let same {
                        merged[same].often = "once or always"
                    } else {
                        merged.append(row)
                    }
                }
            }

            var description: String {
                let place = place.isEmpty ? "" : "\(place), \(often): "
                return "| \(place)\(names.joined(separator: ", ")) | \(cost) |"
            }
        }

        /// The cost of a failure, as a row has it.
        private func cost(of failure: FailureCase, _ stand: ClientStand) async throws -> String {
            try stand.startOver()
            try failure.script(stand)
            // What still waits ends.
            defer { stand.clock.advance(by: 1e9) }
            var (tries, seconds, answer) = try await outcome(failure, stand)
            if let later = failure.later {
                try later(stand)
                (tries, seconds, answer) = try await outcome(failure, stand)
            }
            let cost = stand.cost
            let calls = [ClientStand.challenges, ClientStand.keys, ClientStand.sessions]
                .map { String(stand.transport.asked($0)) }.joined(separator: " / ")
            return "\(tries) | \(cost.keys) | \(cost.attestations) | \(calls) | "
                + "\(Self.text(seconds)) | \(answer)"
        }

        /// Sends a request. As long as something holds the enrolment, sends it again on the same
        /// day, up to nine times.
        private func outcome(
            _ failure: FailureCase,
            _ stand: ClientStand
        ) async throws -> (tries: Int, seconds: Double, answer: String) {
            let clock = stand.clock
            let app = try stand.app {
                $0.limits = PortcullisLimits()
                $0.defaultRequirement?.accepts =
                    failure.path == ClientStand.chat ? [.assertion, .session] : [.assertion]
                $0.log = { event in
                    switch event {
                    case .enrolmentHeld(let hold): clock.pass(to: hold.until)
                    case .signingDelayed(let time): clock.pass(to: time)
                    default: break
                    }
                }
            }
            let (start, before) = (clock.now, stand.transport.asked(failure.path))
            let request = try stand.request("GET", failure.path)
            var answer: ProvenResponse
            do {
                answer = try await app.send(request)
            } catch {
                let tries = stand.transport.asked(failure.path) - before
                return (tries, clock.now.timeIntervalSince(start), "an error of the transport")
            }
            let (tries, seconds) = (answer.attempts, clock.now.timeIntervalSince(start))
            let first = Self.text(answer, failure)
            for _ in 1..<10 {
                guard case .none(.enrolmentHeld(let hold)) = answer.proof,
                    // A key of today makes room a day after it was attested, but for rounding.
                    hold.until.timeIntervalSince(start) < 86_399
                else { break }
                clock.advance(to: hold.until)
                answer = try await app.send(request)
                guard answer.proof.isThere else { continue }
                let later = Self.text(clock.now.timeIntervalSince(start))
                return (tries, seconds, "\(first); proven \(later) s later")
            }
            await app.close()
            return (tries, seconds, first)
        }

        private static func text(_ seconds: Double) -> String {
            // Each jump of the clock is a moment longer than what was waited for.
            String(format: "%.1f", seconds)
        }

        private static func text(_ answer: ProvenResponse, _ failure: FailureCase) -> String {
            let refusal =
                answer.refusal.map { refusal in
                    let reason = "`\(refusal.reason)`"
                    return reason == failure.name ? " for this reason" : " \(reason)"
                } ?? ""
            switch answer.proof {
            case .assertion: return "\(answer.statusCode)\(refusal)"
            case .session: return "\(answer.statusCode)\(refusal), in a session"
            case .none(let absence):
                let word = String(describing: absence).prefix { $0 != "(" }
                return "\(answer.statusCode), without proof: `\(word)`"
            }
        }
    }
}

extension SentProof {
    fileprivate var isThere: Bool {
        switch self {
        case .assertion, .session: true
        case .none: false
        }
    }
}
