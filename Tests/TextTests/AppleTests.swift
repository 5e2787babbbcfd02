import Foundation
import LoopbackKit
import Testing

/// What only Apple's systems compile, compiled here against interfaces of their modules.
///
/// No machine that builds this has those systems. `Tests/AppleInterfaces` declares what is used of
/// DeviceCheck and Security, as Apple's documentation does. What this can't find: an interface that
/// is declared wrong there, and what differs in Foundation itself.
@Suite struct AppleTests {
    private static let folder = "Sources/client/PortcullisClient"

    private static func files() throws -> [String] {
        let folder = Repository.folder.appending(path: folder).path
        return try FileManager.default.subpathsOfDirectory(atPath: folder)
            .filter { $0.hasSuffix(".swift") }.sorted().map { "\(folder)/\($0)" }
    }

    /// What the compiler says, with the settings of Package.swift; nothing when it has no error.
    private static func errors(_ files: [String]) throws -> String {
        let interfaces = Repository.folder.appending(path: "Tests/AppleInterfaces").path
        let features = ["ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility"]
            .flatMap { ["-enable-upcoming-feature", $0] }
        let outcome = try ChildProcess.run(
            try #require(ChildProcess.tool("swiftc")),
            ["-typecheck", "-parse-as-library", "-module-name", "PortcullisClient"]
                + ["-swift-version", "6", "-warnings-as-errors", "-I", interfaces]
                + features
                + CodeTests.modules() + files
        )
        return outcome.status == 0 ? "" : outcome.complained + outcome.printed
    }

    @Test func `what only Apple's systems compile is compiled`() throws {
        // Uses of it, so that it is known to be there.
        let names = ["AppAttestService", "DeviceCheckService", "KeychainEnrolmentStore"]
        let uses =
            names.map { "func isThere(_: \($0).Type) {}" } + [
                "func isThere(_ url: URL) -> PortcullisSession { PortcullisSession(gateway: url) }"
            ]
        let file = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-uses-\(UUID().uuidString).swift")
        try (["import Foundation"] + uses).joined(separator: "\n")
            .write(to: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: file) }
        let errors = try Self.errors(Self.files() + [file.path])
        #expect(errors.isEmpty, "\(errors)")
    }
}
