import Foundation
import LoopbackSockets

/// Where the gateway and the cases lie: beside this program, as a release has them, or in the
/// repository that it was built from.
struct ProgramPlaces {
    private let folder: URL

    init() {
        let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        folder = program.deletingLastPathComponent()
    }

    func gateway() throws(ToolError) -> String {
        let path = folder.appending(path: "portcullis").path
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw ToolError("there is no \(path): name the gateway's program with --portcullis")
        }
        return path
    }

    func cases() throws(ToolError) -> String {
        var places = [
            folder.appending(path: "cases"),
            folder.appending(path: "../share/portcullis-prove/cases"),
        ]
        var parent = folder
        for _ in 0..<4 {
            parent.deleteLastPathComponent()
            places.append(parent.appending(path: "Sources/client/proving/cases"))
        }
        let found = places.first { FileManager.default.fileExists(atPath: $0.path) }
        guard let found else {
            throw ToolError("there are no cases beside \(folder.path): name them with --cases")
        }
        return found.standardized.path
    }
}
