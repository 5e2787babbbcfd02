import Expectations
import Foundation
import Testing

// The style, enforced. The checks are in Support, one file each; the lists that grow with the
// project are in Support/Held.swift. What each check catches and lets pass is in SnippetTests.
// Formatting itself is for `swift format lint --strict`, and the examples under rules/ are for the
// tests of Configuration.

@Suite struct TidyTests {
    private let project: Project

    init() throws {
        project = try Project.shared.get()
    }

    private func expectNone(_ findings: [Finding], location: SourceLocation = #_sourceLocation) {
        guard !findings.isEmpty else { return }
        let lines = Set(findings.map(\.description)).sorted().map { "\n  " + $0 }
        Issue.record("\(lines.count) to mend:\(lines.joined())", sourceLocation: location)
    }

    @Test func `Package.swift is understood, and every folder is a target`() {
        #expect(project.manifest.targets.count > 5)
        for folder in project.folders {
            #expect(project.manifest[folder] != nil, "Sources/\(folder) is no target")
        }
    }

    @Test func `every import is declared and allowed`() {
        let check = ImportCheck(manifest: project.manifest)
        expectNone(project.ownSources.flatMap(check.findings))
    }

    @Test func `a folder names no type of the folders above it`() {
        for (root, folders) in Held.layers {
            let check = LayerCheck(root, folders, project.ownSources)
            expectNone(project.ownSources.flatMap(check.findings))
        }
    }

    @Test func `what plays devices is no part of the gateway`() {
        let check = ImportCheck(manifest: project.manifest)
        expectNone(["portcullis", "Gateway"].flatMap(check.shippedFindings))
    }

    @Test func `no forbidden word stands in the code`() {
        let findings = project.sources.flatMap { source in
            let isProgram = project.manifest[source.target]?.kind == .program
            return TokenCheck(isProgram: isProgram).findings(in: source)
        }
        expectNone(findings)
    }

    @Test func `files, types, functions and lines keep their sizes`() {
        expectNone((project.sources + [project.manifestSource]).flatMap(SizeCheck.findings))
        let code = project.ownSources.filter { $0.path.hasPrefix("Sources/") }
        expectNone(SizeCheck.types(code))
        let columns = project.cFiles.flatMap { file in
            let lines = file.text.split(separator: "\n", omittingEmptySubsequences: false)
            return SizeCheck.columns(path: file.path, lines: lines)
        }
        expectNone(columns)
    }

    @Test func `texts keep their sizes`() throws { expectNone(try TextCheck().lengths) }

    @Test func `the words that stand for a sentence to be rewritten become fewer`() throws {
        let count = try TextCheck().wordCount(project.sources)
        #expect(count <= TextCheck.wordsMax, "style: plain words")
    }

    @Test func `files and types are named after what they are`() {
        expectNone(project.sources.flatMap(NameCheck.findings))
        expectNone(NameCheck.findings(in: project.manifest, sources: project.sources))
    }

    @Test func `what an app links is on the oldest systems that Package.swift names`() {
        let check = PlatformCheck(project)
        #expect(check.targets.isSuperset(of: ["PortcullisClient", "RequestBinding", "Encodings"]))
        #expect(check.oldest >= 16)
        #expect(check.targets.isSuperset(of: ["AppAttest", "DeviceKey", "Signatures"]))
        // An app links no library of Linux, OpenSSL least of all.
        let client = project.manifest.closure(of: "PortcullisClient")
        #expect(client.isDisjoint(with: ["CCurl", "CLinux", "COpenSSL", "Cryptography"]))
        // `Signatures` uses OpenSSL in the gateway alone.
        #expect(check.targets.isDisjoint(with: ["CCurl", "CLinux", "Cryptography"]))
        expectNone(project.sources.flatMap(check.findings))
    }

    @Test func `the privacy manifest has a reason for each API of the client that needs one`()
        throws
    {
        let path = "Sources/client/PortcullisClient/PrivacyInfo.xcprivacy"
        let file = try Project.root().appending(path: path)
        let check = try PrivacyCheck(propertyList: Data(contentsOf: file))
        #expect(check.isQuiet)
        let linked = PlatformCheck(project).targets
        let sources = project.ownSources.filter { !$0.isTest && linked.contains($0.target) }
        expectNone(sources.flatMap(check.findings))
        // SwiftPM puts it into the app.
        #expect(project.manifestSource.tokens.contains { $0.text == "PrivacyInfo.xcprivacy" })
    }

    @Test func `every public name is documented`() {
        expectNone(project.sources.flatMap(DocumentationCheck.findings))
    }

    @Test func `the list of unchecked files holds no file that needs it no more`() {
        for path in Held.unchecked.keys {
            let source = project.sources.first { $0.path == path }
            let isNeeded = source?.tokens.contains {
                ["unchecked", "nonisolated"].contains($0.text)
            }
            expectEqual(isNeeded, true, "take \(path) off the list in Held.swift")
        }
        for path in Held.exclusivity.keys {
            let source = project.sources.first { $0.path == path }
            let isNeeded = source?.tokens.contains { $0.text == "exclusivity" }
            expectEqual(isNeeded, true, "take \(path) off the list in Held.swift")
        }
    }

    @Test func `the built portcullis has nothing of the software authenticator in it`() throws {
        // The program lies beside the bundle of the tests, when it was built.
        let bundle = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        let program = bundle.appending(path: "portcullis")
        guard FileManager.default.isExecutableFile(atPath: program.path) else {
            print("skipped: no \(program.path)")
            return
        }
        let bytes = try Data(contentsOf: program, options: .alwaysMapped)
        // A mangled name holds its module's name after its length.
        expectEqual(bytes.range(of: Data("21SoftwareAuthenticator".utf8)), nil)
    }
}
