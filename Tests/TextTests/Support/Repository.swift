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

    /// The index of each folder: README.md is the front door, the others are beside what they
    /// describe.
    static let indexes = [
        "README.md", "rules/README.md", "deploy/README.md", "deploy/docs/runbook/README.md",
        "Sources/README.md", "Sources/client/README.md", "Tests/README.md",
        ".github/CONTRIBUTING.md",
    ]

    /// The texts whose commands are executed: each index and its pages.
    static let texts = indexes.flatMap { [$0] + pages(of: $0) }

    /// The pages of an index: each text in the folder `docs` beside it, or beside an index that
    /// lies in one.
    static func pages(of index: String) -> [String] {
        let place = index.split(separator: "/").dropLast().map(String.init)
        let docs = (place.contains("docs") ? place : place + ["docs"]).joined(separator: "/")
        let names = try? FileManager.default.contentsOfDirectory(
            atPath: folder.appending(path: docs).path
        )
        return (names ?? [])
            .filter { $0.hasSuffix(".md") && $0 != "README.md" }
            .sorted()
            .map { "\(docs)/\($0)" }
    }

    static var hasPrograms: Bool {
        ["portcullis", "portcullis-load", "portcullis-demo"].allSatisfy {
            exists(programs.appending(path: $0))
        }
    }

    static func exists(_ file: URL) -> Bool { FileManager.default.fileExists(atPath: file.path) }
}
