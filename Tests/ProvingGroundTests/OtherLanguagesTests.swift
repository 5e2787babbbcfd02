import Expectations
import Foundation
import ProvingGround
import Testing

/// Clients that were written from the pages alone, in programs of their own.
@Suite struct OtherLanguagesTests {
    /// A client, the device that is played for it, and groups of cases: one for each test in a
    /// whole run, all of them after each other in a short one.
    struct Row: Sendable, CustomTestStringConvertible {
        let client: Client
        let platform: String
        let groups: [String]

        var testDescription: String {
            "\(client.rawValue) on \(platform): \(groups.joined(separator: " "))"
        }

        /// The same, as tests of one group each where all cases are played.
        var parts: [Row] {
            guard Depth.isWhole else { return [self] }
            return groups.map { Row(client: client, platform: platform, groups: [$0]) }
        }
    }

    enum Client: String, Sendable {
        case python = "PythonClient/drive.py"
        case typeScript = "TypeScriptClient/drive.mjs"

        var interpreter: String { self == .python ? "python3" : "node" }
    }

    /// Android phones differ in the key and in its signature.
    static let rows = [
        Row(client: .python, platform: "ios", groups: CaseFolder.groups),
        Row(client: .python, platform: "android", groups: ["signing", "enrolment", "recovery"]),
        Row(client: .typeScript, platform: "ios", groups: CaseFolder.groups),
        Row(
            client: .typeScript,
            platform: "android",
            groups: ["signing", "enrolment", "recovery"]
        ),
    ].flatMap(\.parts)

    @Test(.enabled(if: Place.isPossible), arguments: rows.filter(isPossible))
    func `a client in another language passes the cases that it offers`(row: Row) async throws {
        let cases = Depth.chosen(try CaseFolder(Place.cases).only(row.groups))
        let report = try await Proving.report(cases) { server, folder in
            try await Self.run(row, against: server, in: folder)
        }
        #expect(report.failed == 0, "\(report.summary)")
        expectEqual(report.rows.count, cases.count)
    }

    private static func isPossible(_ row: Row) -> Bool {
        let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
        let isThere = folders.contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(row.client.interpreter)")
        }
        if !isThere { print("no \(row.client.interpreter): \(row) is not tried") }
        return isThere
    }

    /// Returns when the driver has ended, which `timeout` sees to.
    private static func run(_ row: Row, against server: URL, in folder: URL) async throws {
        let program = Process()
        program.executableURL = URL(filePath: "/usr/bin/env")
        let driver = Place.root.appending(path: "Tests/\(row.client.rawValue)").path
        program.arguments = [
            "timeout", "--kill-after=5", "900", row.client.interpreter, driver,
            server.absoluteString, row.platform,
        ]
        program.environment = ProcessInfo.processInfo.environment.merging(
            ["PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": folder.path]
        ) { $1 }
        try await withCheckedThrowingContinuation { (ended: CheckedContinuation<Void, any Error>) in
            program.terminationHandler = { _ in ended.resume() }
            do { try program.run() } catch { ended.resume(throwing: error) }
        }
    }
}
