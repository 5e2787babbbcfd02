import Expectations
import Foundation
import LoopbackKit
import Testing

extension ClientScenarios {
    /// The client for Android on the proving ground.
    @Suite(.enabled(if: AndroidApp.isPossible)) struct AndroidProving {
        private static let cases = AndroidApp.root.appending(path: "Sources/client/proving/cases")
        private static let groups =
            ((try? FileManager.default.contentsOfDirectory(atPath: cases.path)) ?? []).sorted()
        /// All cases of a group each; the short run of all groups where not all are asked for.
        private static let parts =
            ProcessInfo.processInfo.environment["PORTCULLIS_PROVING"] == "all"
            ? groups.map { ["--only", $0] } : [["--short"]]

        @Test(arguments: parts)
        func `the client passes the cases of the proving ground`(part: [String]) throws {
            let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
                .appending(path: "portcullis-prove").path
            let server = try ChildProcess(
                program,
                ["--listen", "127.0.0.1:0", "--cases", Self.cases.path] + part,
                input: Data()
            )
            defer { server.end() }
            let address = try server.wait(for: "address") { printed, _ in
                printed.firstMatch(of: /(http:\S+)\/next/).map { String($0.1) }
            }
            let folder = FileManager.default.temporaryDirectory
                .appending(path: "portcullis-proven-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let driver = try AndroidApp.run("portcullis.prove.ProveKt", [address, folder.path])
            expectEqual(driver.status, 0)
            // The server ends after its run, and says what failed.
            let report = try server.wait(for: "report") { printed, _ in
                printed.firstMatch(of: /(\d+) passed, (\d+) failed/).map { ($0.1, printed) }
            }
            #expect(report.0 != "0" && driver.status == 0, "\(report.1)")
        }
    }
}
