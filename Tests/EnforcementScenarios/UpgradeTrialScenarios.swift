import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// `deploy/upgrade-trial`, in short: load, a signed upload and a WebSocket over each upgrade.
    @Suite(.enabled(if: Scenario.loadProgram != nil && Scenario.tool("python3") != nil))
    struct UpgradeTrials {
        @Test func `two upgrades under load cost clients nothing`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let program = try #require(Scenario.program)
            let folder = URL(filePath: program).deletingLastPathComponent().path
            let root = URL(filePath: #filePath).deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent().path
            // Slow enough for a debug build beside the other tests.
            let outcome = try scenario.run(
                try #require(Scenario.tool("python3")),
                [
                    "\(root)/deploy/upgrade-trial", "2", "--rate", "40", "--seconds", "3",
                    "--programs", folder,
                ]
            )
            expectEqual(outcome.status, 0, "\(outcome)")
            // A heading, and a line for each: number, pause, requests, and what must be zero.
            let lines = outcome.printed.split(separator: "\n").dropFirst()
            expectEqual(lines.count, 2)
            for line in lines {
                let words = line.split(separator: " ")
                #expect(words.count == 7 && words.suffix(4).allSatisfy { $0 == "0" }, "\(line)")
                expectEqual(Int(words.dropFirst(2).first ?? "").map { $0 >= 60 }, true, "\(line)")
            }
        }
    }
}
