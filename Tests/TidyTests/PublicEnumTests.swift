import Foundation
import Testing

/// An enum that grows breaks each `switch` over it in apps. So each says whether it may.
@Suite struct PublicEnumTests {
    private static let folder = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Sources/client")

    @Test func `each public enum is marked frozen, or as one that may grow, and says so`() throws {
        let files = try #require(
            FileManager.default.enumerator(at: Self.folder, includingPropertiesForKeys: nil)
        )
        var count = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            let lines = try String(contentsOf: file, encoding: .utf8)
                .split(separator: "\n", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            for (number, line) in lines.enumerated() where line.hasPrefix("public enum ") {
                count += 1
                let before = lines[max(0, number - 5)..<number]
                let isFrozen =
                    before.last == "@frozen" && before.contains { $0.hasPrefix("/// Frozen: ") }
                let mayGrow =
                    before.contains("@nonexhaustive(warn)")
                    && before.contains { $0.hasPrefix("/// May grow: ") }
                #expect(isFrozen != mayGrow, "\(file.lastPathComponent): \(line)")
            }
        }
        #expect(count >= 20)
    }
}
