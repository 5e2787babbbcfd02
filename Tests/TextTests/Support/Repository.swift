import Foundation

/// The files that the tests stand in, and the programs built from them.
enum Repository {
    /// The folder with Package.swift above this file.
    static let folder: URL = {
        var folder = URL(filePath: #filePath).resolvingSymlinksInPath()
        while folder.path != "/", !exists(folder.appending(path: "Package.swift")) {
            folder.deleteLastPathComponent()
        }
        return folder
    }()

    /// Where the programs are: beside the bundle of the tests.
    static let programs = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()

    /// The texts whose commands are executed: README.md, the front door, the index of each folder,
    /// and all pages in the folders `docs` beside the indexes.
    static let texts =
        [
            "README.md", "rules/README.md", "deploy/README.md", "Sources/README.md",
            "Sources/client/README.md", "Tests/README.md", ".github/CONTRIBUTING.md",
        ] + ["rules", "deploy", "Sources", "Tests"].flatMap(pages)

    /// The pages below a folder: each `….md` with a folder `docs` above it.
    static func pages(of top: String) -> [String] {
        let files = FileManager.default.enumerator(atPath: folder.appending(path: top).path)
        return (files?.compactMap { $0 as? String } ?? [])
            .filter { $0.hasSuffix(".md") && $0.split(separator: "/").contains("docs") }
            .map { "\(top)/\($0)" }
            .sorted()
    }

    static var hasPrograms: Bool {
        ["portcullis", "portcullis-load", "portcullis-demo"].allSatisfy {
            exists(programs.appending(path: $0))
        }
    }

    static func exists(_ file: URL) -> Bool { FileManager.default.fileExists(atPath: file.path) }
}
