import Expectations
import Foundation
import ProvingDriver
import ProvingGround
import Testing

/// Clients that do one thing wrong fail the cases that are about it, and no others.
@Suite struct MisconductTests {
    /// A client, the groups that it plays, and the cases that it fails.
    struct Row: Sendable, CustomTestStringConvertible {
        let misconduct: Misconduct
        let groups: [String]
        let fails: Set<String>

        var testDescription: String { misconduct.rawValue }
    }

    static let rows = [
        Row(
            misconduct: .insists,
            groups: ["lost-answers", "sessions"],
            fails: [
                "lost-answers/challenge-spent", "lost-answers/patch", "lost-answers/strict",
                "lost-answers/twice", "sessions/replayed-order",
            ]
        ),
        Row(
            misconduct: .obeysEveryone,
            groups: ["not-the-gateway", "signing"],
            fails: [
                "not-the-gateway/both-dropped", "not-the-gateway/challenges-401",
                "not-the-gateway/keys-401", "not-the-gateway/middle-401",
                "not-the-gateway/origin-401",
            ]
        ),
        Row(
            misconduct: .dropsChallenges,
            groups: ["signing", "fields"],
            fails: ["signing/new-challenge"]
        ),
        Row(
            misconduct: .forgets,
            groups: ["processes", "clocks"],
            fails: [
                "processes/at-once", "processes/one-key", "processes/by-turns",
                "processes/other-has-new-key", "processes/reset-elsewhere",
                "processes/takes-over",
            ]
        ),
    ]

    /// Cases that wait for a connection that ended, which takes URLSession twelve seconds on Linux.
    private static let slow: Set<String> = ["lost-answers/each-20th"]

    @Test(.enabled(if: Place.isPossible), arguments: rows)
    func `a client that does one thing wrong fails the cases about it alone`(row: Row) async throws
    {
        let named = try CaseFolder(Place.cases).only(row.groups)
        let others = Depth.chosen(named).map(\.path)
        let cases = named.filter { proving in
            let path = proving.path
            return row.fails.contains(path) || others.contains(path) && !Self.slow.contains(path)
        }
        let report = try await Proving.report(cases) { server, folder in
            _ = try await ProvingDriver(server, folder: folder, misconduct: row.misconduct).run()
        }
        let failed = report.rows.filter { $0.ending == .failed }.map(\.path)
        #expect(Set(failed) == row.fails, "\(report.summary)")
    }
}
