import Foundation
import Testing

/// What runs without anybody looking: it may read the repository alone, and calls what is there.
@Suite struct WorkflowTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../..").standardized

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    @Test(arguments: ["ci", "scheduled"])
    func `a workflow may only read, knows no secret, and calls scripts that are there`(
        _ name: String
    ) throws {
        let text = try Self.text(".github/workflows/\(name).yml")
        #expect(text.contains("\npermissions:\n  contents: read\n"))
        #expect(!text.contains("secrets."))
        #expect(!text.contains(": write"))
        let commands = text.split(separator: "\n").compactMap { line in
            line.firstRange(of: "- run: ").map { line[$0.upperBound...] }
        }
        #expect(!commands.isEmpty)
        for command in commands {
            let script = Self.root.appending(path: String(command.prefix { $0 != " " })).path
            #expect(FileManager.default.isExecutableFile(atPath: script), "\(command)")
        }
    }

    @Test func `continuous integration runs the command of the README`() throws {
        #expect(try Self.text("README.md").contains("deploy/test"))
        #expect(try Self.text(".ci/run").contains("deploy/test\""))
        #expect(try Self.text(".github/workflows/ci.yml").contains("- run: .ci/run\n"))
    }
}
