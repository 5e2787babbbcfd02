import Expectations
import Foundation
import Testing

@testable import Gateway

/// The path of the program that an upgrade starts.
@Suite struct OwnProgramTests {
    private let folder: String

    init() throws {
        folder = NSTemporaryDirectory() + "own-program-\(UUID().uuidString)"
        for name in ["bin", "other"] {
            try FileManager.default.createDirectory(
                atPath: "\(folder)/\(name)",
                withIntermediateDirectories: true
            )
        }
        try "1".write(toFile: folder + "/v1", atomically: false, encoding: .utf8)
        try "2".write(toFile: folder + "/other/portcullis", atomically: false, encoding: .utf8)
        symlink("../v1", folder + "/bin/portcullis")
        // In the place of /proc/self/exe.
        symlink(folder + "/v1", folder + "/running")
    }

    private func path(_ name: String, search: String = "") -> String {
        let running = folder + "/running"
        let own = OwnProgram(name, folder: folder, search: search, running: running)
        return own.path.replacing(folder, with: "")
    }

    @Test func `it is the word of the start, made absolute, and its links are not resolved`() {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        expectEqual(path(folder + "/bin/portcullis"), "/bin/portcullis")
        expectEqual(path("bin/portcullis"), "/bin/portcullis")
        expectEqual(path("./bin/portcullis"), "/./bin/portcullis")
        // A name that the shell has found: the first folder that has this program.
        let search = "\(folder)/other:/no/such:\(folder)/bin"
        expectEqual(path("portcullis", search: search), "/bin/portcullis")
        expectEqual(path("portcullis", search: "bin"), "/bin/portcullis")
    }

    @Test func `a word that does not lead to the program that runs is not believed`() {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        expectEqual(path("other/portcullis"), "/v1")
        expectEqual(path("portcullis", search: "\(folder)/other"), "/v1")
        expectEqual(path(""), "/v1")
    }

    @Test func `a file that was put in another one's place is another one`() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let program = folder + "/other/portcullis"
        let before = OwnProgram.File(program)
        #expect(before != nil)
        try "2".write(toFile: program + ".new", atomically: false, encoding: .utf8)
        expectEqual(rename(program + ".new", program), 0)
        #expect(OwnProgram.File(program) != before)
        unlink(program)
        expectEqual(OwnProgram.File(program), nil)
    }
}
