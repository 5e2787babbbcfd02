import Expectations
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

    @Test(arguments: [".ci/run", ".github/workflows/ci.yml", ".github/workflows/scheduled.yml"])
    func `unstable tests are shown by what runs the tests`(_ path: String) throws {
        #expect(try Self.text(path).contains(".build/unstable-tests\n"))
    }

    /// What a program left there by chance is committed easily.
    @Test func `nothing else lies at the top`() throws {
        let found = try Self.printed(by: "git ls-files | cut -d/ -f1 | sort -u")
            .split(separator: "\n").map(String.init)
        let known = [
            "CHANGELOG.md", "LICENSE", "Package.swift", "README.md", "Sources", "Tests", "deploy",
            "rules",
        ]
        expectEqual(found.filter { !$0.hasPrefix(".") && !known.contains($0) }, [])
    }

    /// What a script of bash prints that runs here.
    static func printed(by script: String) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/bash")
        process.arguments = ["-c", script]
        process.currentDirectoryURL = root
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `parts of a run begin in their order, each when its pool allows it`() throws {
        let script = """
            set -euo pipefail
            scratch=$(mktemp -d)
            source .ci/parts.bash
            names='a b c d e f'
            for part in $names; do
                begin "$part" "$builds_pool" bash -c 'echo "$0" >> "$1"' "$part" "$scratch/order"
            done
            for part in $names; do status_of "$part" > /dev/null; done
            tr -d '\\n' < "$scratch/order"
            """
        try expectEqual(Self.printed(by: script), "abcdef")
    }

    @Test func `a part of a run that takes too long is ended, with what it has started`() throws {
        let script = """
            set -euo pipefail
            scratch=$(mktemp -d)
            source .ci/parts.bash
            begin good "$tests_pool" echo well
            part_seconds=5
            never='set -m; echo "◇ Test \\"a\\" started."; sleep 98765 & echo $! > "$0"; wait'
            begin stuck "$builds_pool" bash -c "$never" "$scratch/child"
            status_of good
            status_of stuck || echo "status $?"
            awk -f .ci/failed-tests.awk "$scratch/stuck.log"
            child=$(cat "$scratch/child")
            until ! kill -0 "$child" 2> /dev/null || ((SECONDS > 60)); do sleep 0.1; done
            kill -KILL "$child" 2> /dev/null || echo ended
            """
        let printed = try Self.printed(by: script)
        let lines = printed.split(separator: "\n").map(String.init)
        expectEqual(lines.first?.hasSuffix(" s: well"), true)
        let second = lines.dropFirst().first ?? ""
        #expect(second.hasSuffix(": ended: it took longer than 0 min (PORTCULLIS_PART_MINUTES)"))
        #expect(lines.dropFirst(2).contains("status 124"))
        #expect(lines.contains("not ended: Test \"a\""))
        expectEqual(lines.last, "ended", "\(printed)")
    }
}
