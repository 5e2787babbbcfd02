import Expectations
import Foundation
import FuzzTargets
import Testing

/// The corpora that fuzzing has found, played through the same targets. A claim that does not hold
/// ends the process; its message names the claim.
struct CorpusTests {
    private static let folder = URL(filePath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Fuzz/Corpus")

    @Test(arguments: FuzzTarget.allCases)
    func `what every parser was fuzzed with before holds still`(_ target: FuzzTarget) throws {
        let folder = Self.folder.appending(path: target.rawValue)
        let files = try FileManager.default.contentsOfDirectory(
            at: folder,
            includingPropertiesForKeys: nil
        )
        #expect(!files.isEmpty, "a target has a corpus")
        for file in files { target.run([UInt8](try Data(contentsOf: file))) }
        target.run([])
    }

    @Test func `every folder of the corpus is that of a target`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        expectEqual(Set(names), Set(FuzzTarget.allCases.map(\.rawValue)))
    }
}
