import Expectations
import Foundation
import ProvingGround
import Testing

/// Clients that were written from the pages alone, in programs of their own.
@Suite struct OtherLanguagesTests {
    /// A client, the device that is played for it, and a group of cases.
    struct Row: Sendable, CustomTestStringConvertible {
        let client: Client
        let platform: String
        let group: String

        var testDescription: String { "\(client.rawValue) on \(platform): \(group)" }
    }

    enum Client: String, Sendable {
        case python = "PythonClient/drive.py"
        case typeScript = "TypeScriptClient/drive.mjs"

        var interpreter: String { self == .python ? "python3" : "node" }
    }

    /// All groups for one client. Android phones differ in the key and in its signature.
    static let rows =
        CaseFolder.groups.map { Row(client: .python, platform: "ios", group: $0) }
        + ["signing", "enrolment", "recovery"].flatMap {
            [
                Row(client: .python, platform: "android", group: $0),
                Row(client: .typeScript, platform: "ios", group: $0),
            ]
        }

    @Test(.enabled(if: Place.isPossible), arguments: rows.filter(isPossible))
    func `a client in another language passes the cases that it offers`(row: Row) async throws {
        let cases = try CaseFolder(Place.cases).only([row.group])
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
