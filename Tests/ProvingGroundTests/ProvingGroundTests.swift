import Expectations
import Foundation
import LoopbackSockets
import ProvingDriver
import ProvingGround
import Synchronization
import Testing

/// The package's client against the cases of all groups.
@Suite struct ProvingGroundTests {
    @Test(.enabled(if: Place.isPossible), arguments: CaseFolder.groups)
    func `the client passes the cases of each group`(group: String) async throws {
        let cases = try CaseFolder(Place.cases).only([group])
        let report = try await Proving.report(cases) { server, folder in
            _ = try await ProvingDriver(server, folder: folder).run()
        }
        #expect(report.failed == 0, "\(report.summary)")
        expectEqual(report.rows.count, cases.count)
    }
}

/// How much a run of the tests plays.
enum Depth {
    /// `deploy/test --proving` plays all cases for all clients. Else clients of other
    /// languages, and clients that do something wrong, play the short run alone: the cases
    /// themselves are tested by the package's client.
    static let isWhole = ProcessInfo.processInfo.environment["PORTCULLIS_PROVING"] == "all"

    static func chosen(_ cases: [ProvingCase]) -> [ProvingCase] {
        isWhole ? cases : CaseFolder.short(of: cases)
    }
}

/// Where things are.
enum Place {
    static let root = URL(filePath: #filePath).appending(path: "../../..").standardized
    static let cases = root.appending(path: "Sources/client/proving/cases").path
    /// The gateway's program beside the bundle of the tests.
    static let gateway = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "portcullis").path

    static var isPossible: Bool {
        if FileManager.default.isExecutableFile(atPath: gateway) { return true }
        print("no \(gateway): the proving ground is not tried")
        return false
    }
}

/// A run of a driver in this process.
enum Proving {
    /// Plays cases with a driver.
    static func report(
        _ cases: [ProvingCase],
        by drive: (URL, URL) async throws -> Void
    ) async throws -> ProvingReport {
        var settings = ProvingServer.Settings(program: Place.gateway, cases: cases)
        let box = ReportBox()
        settings.ended = { done in box.report.withLock { $0 = done } }
        let server = try ProvingServer(settings)
        defer { server.stop() }
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-proven-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        guard let url = URL(string: "http://127.0.0.1:\(server.port)") else {
            throw URLError(.badURL)
        }
        try await drive(url, folder)
        return try #require(box.report.withLock { $0 })
    }

    private final class ReportBox: Sendable {
        let report = Mutex<ProvingReport?>(nil)
    }
}
