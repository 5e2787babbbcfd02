import Foundation

/// The files of the package that the tests stand in.
struct Project {
    struct TextFile {
        /// Path inside the package.
        let path: String
        let text: String
    }

    static let shared = Result { try Project() }

    let manifest: Manifest
    let manifestSource: SwiftSource
    /// Every Swift file under Sources and Tests.
    let sources: [SwiftSource]
    /// Every C file and header under Sources.
    let cFiles: [TextFile]
    /// Folders under Tests that hold packages of their own.
    let nestedPackages: [String]
    /// Names of the targets' folders, which stand in groups under Sources. A text may stand beside
    /// them.
    let folders: [String]

    struct Missing: Error, CustomStringConvertible {
        let description: String
    }

    init() throws {
        let root = try Self.root()
        let paths =
            try Self.paths(under: "Sources", in: root) + Self.paths(under: "Tests", in: root)
        let read = { (path: String) throws -> String in
            try String(contentsOf: root.appending(path: path), encoding: .utf8)
        }
        manifestSource = SwiftSource(path: "Package.swift", text: try read("Package.swift"))
        manifest = Manifest(source: manifestSource)
        sources = try paths.filter { $0.hasSuffix(".swift") }.map {
            SwiftSource(path: $0, text: try read($0))
        }
        cFiles = try paths.filter { $0.hasSuffix(".c") || $0.hasSuffix(".h") }.map {
            TextFile(path: $0, text: try read($0))
        }
        nestedPackages = paths.filter { $0.hasSuffix("/Package.swift") }.map {
            String($0.dropLast("Package.swift".count))
        }
        folders = Set(
            paths.filter { $0.hasPrefix("Sources/") && !$0.hasPrefix("Sources/docs/") }
                .filter { !$0.hasSuffix(".md") }
                .compactMap { $0.split(separator: "/").dropFirst(2).first.map(String.init) }
                // Texts, Kotlin, and the cases of the proving ground.
                .filter { !["android", "docs", "proving"].contains($0) }
        ).sorted()
    }

    /// Sources of this package's own targets; those of a package in it are declared there.
    var ownSources: [SwiftSource] {
        sources.filter { source in !nestedPackages.contains { source.path.hasPrefix($0) } }
    }

    /// The folder with Package.swift above this file.
    static func root() throws -> URL {
        var folder = URL(filePath: #filePath).resolvingSymlinksInPath()
        while folder.path != "/" {
            folder.deleteLastPathComponent()
            let manifest = folder.appending(path: "Package.swift").path
            if FileManager.default.fileExists(atPath: manifest) { return folder }
        }
        throw Missing(description: "no Package.swift above \(#filePath)")
    }

    private static func paths(under folder: String, in root: URL) throws -> [String] {
        let start = root.appending(path: folder).path
        guard let names = FileManager.default.enumerator(atPath: start) else {
            throw Missing(description: "no folder \(start)")
        }
        return names.compactMap { $0 as? String }
            .filter { !$0.split(separator: "/").contains { $0.hasPrefix(".") } }
            .map { "\(folder)/\($0)" }
            .sorted()
    }
}
