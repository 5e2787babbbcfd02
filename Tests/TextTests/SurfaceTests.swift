import Expectations
import Foundation
import LoopbackKit
import Testing

/// What Sources/docs/stability.md promises is what Tests/Surfaces lists.
struct SurfaceTests {
    private static let check = Repository.folder.appending(path: "Tests/Surfaces/check")

    @Test(.enabled(if: Repository.hasPrograms))
    func `everything that code outside depends on is as listed`() throws {
        let folder = Repository.programs.path
        let outcome = try ChildProcess.run(Self.check.path, [folder], input: "")
        expectEqual(outcome.status, 0, "\(outcome.printed)\(outcome.complained)")
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `a row that is gone and a row that is new are both named`() throws {
        let files = FileManager.default
        let root = files.temporaryDirectory.appending(path: "surfaces-\(UUID().uuidString)")
        defer { try? files.removeItem(at: root) }
        try files.createDirectory(
            at: root.appending(path: "Tests"),
            withIntermediateDirectories: true
        )
        let lists = root.appending(path: "Tests/Surfaces")
        try files.copyItem(at: Self.check.deletingLastPathComponent(), to: lists)
        for name in ["Sources", "deploy", "rules", ".build"] {
            try files.createSymbolicLink(
                at: root.appending(path: name),
                withDestinationURL: Repository.folder.appending(path: name)
            )
        }
        let metrics = lists.appending(path: "metrics.tsv")
        let text = try String(contentsOf: metrics, encoding: .utf8)
        let row = "portcullis_draining\tgauge\n"
        #expect(text.contains(row))
        try text.replacing(row, with: "portcullis_draining\tcounter\n")
            .write(to: metrics, atomically: true, encoding: .utf8)

        let check = lists.appending(path: "check").path
        let outcome = try ChildProcess.run(check, [Repository.programs.path], input: "")
        expectEqual(outcome.status, 1)
        let printed = outcome.printed
        #expect(printed.contains("metrics: gone: portcullis_draining\tcounter\n"), "\(outcome)")
        #expect(printed.contains("metrics: new: portcullis_draining\tgauge\n"), "\(outcome)")
        #expect(printed.contains("only a major version may change"), "\(outcome)")
    }
}
