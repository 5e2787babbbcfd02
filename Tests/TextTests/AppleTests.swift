import Foundation
import LoopbackKit
import Testing

/// What only Apple's systems compile, compiled here against interfaces of their modules.
///
/// No machine that builds this has those systems. `Tests/AppleInterfaces` declares what is used of
/// DeviceCheck and Security, as Apple's documentation does, and a Foundation with networking in it.
/// The compiler gets copies of the sources that import that one, so that it takes the branches of
/// Apple's systems. What this can't find: an interface that is declared wrong there, what is newer
/// than an app's system (`TidyTests` have a list), and where Foundation behaves differently.
@Suite struct AppleTests {
    /// Copies of a target's sources, as Apple's systems read them.
    private static func copy(_ folder: String, to scratch: URL) throws -> [String] {
        let folder = Repository.folder.appending(path: folder)
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".swift") }
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        return try names.map { name in
            let text = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
            let copy = scratch.appending(path: name.replacing("/", with: "-"))
            try text.replacing(/import Foundation\n/, with: "import FoundationOfApple\n")
                .replacing("canImport(FoundationNetworking)", with: "canImport(NotOfApple)")
                .replacing("canImport(FoundationEssentials)", with: "canImport(NotOfApple)")
                .replacing("os(Linux)", with: "os(macOS)")
                // Optional methods of a protocol are Objective-C's, which Linux has not.
                .replacing("urlSession?(", with: "urlSession(")
                // Names of these methods of authentication are unavailable on Linux.
                .replacing("NSURLAuthenticationMethod", with: "OfAppleAuthenticationMethod")
                .write(to: copy, atomically: true, encoding: .utf8)
            return copy.path
        }
    }

    /// What the compiler says, with the settings of Package.swift; nothing when it has no error.
    private static func errors(_ arguments: [String], _ files: [String]) throws -> String {
        let interfaces = Repository.folder.appending(path: "Tests/AppleInterfaces").path
        let features = ["ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility"]
            .flatMap { ["-enable-upcoming-feature", $0] }
        let outcome = try ChildProcess.run(
            try #require(ChildProcess.tool("swiftc")),
            arguments + ["-parse-as-library", "-package-name", "portcullis"]
                + ["-swift-version", "6", "-warnings-as-errors", "-I", interfaces]
                + features
                + CodeTests.modules() + files,
            patience: CodeTests.compilerPatience
        )
        return outcome.status == 0 ? "" : outcome.complained + outcome.printed
    }

    @Test func `what only Apple's systems compile is compiled`() throws {
        let scratch = Self.scratch()
        defer { try? FileManager.default.removeItem(at: scratch) }
        let files = try Self.copy("Sources/client/PortcullisClient", to: scratch)
        #expect(files.count > 40)
        // Uses of it, so that it is known to be there.
        let names = ["AppAttestService", "DeviceCheckService", "KeychainEnrolmentStore"]
        let uses =
            names.map { "func isThere(_: \($0).Type) {}" } + [
                "func isThere(_ url: URL) -> PortcullisSession { PortcullisSession(gateway: url) }"
            ]
        let file = scratch.appending(path: "Uses.swift")
        try (["import FoundationOfApple"] + uses).joined(separator: "\n")
            .write(to: file, atomically: true, encoding: .utf8)
        let arguments = ["-typecheck", "-module-name", "PortcullisClient"]
        let errors = try Self.errors(arguments, files + [file.path])
        #expect(errors.isEmpty, "\(errors)")
    }

    /// Without the trait `Gateway`, as every system but Linux compiles it: no file may need OpenSSL
    /// then. swift-crypto has CryptoKit's interface. Not only type-checked, since the compiler
    /// checks the lifetimes of spans later.
    @Test func `AppAttest compiles without OpenSSL, as a server on macOS links it`() throws {
        let scratch = Self.scratch()
        defer { try? FileManager.default.removeItem(at: scratch) }
        let targets = [
            "base/Encodings", "base/Signatures", "attestation/DeviceKey",
            "attestation/AppAttest",
        ]
        for target in targets {
            let name = target.split(separator: "/").last.map(String.init) ?? ""
            let files = try Self.copy("Sources/\(target)", to: scratch.appending(path: name))
            let module = scratch.appending(path: "\(name).swiftmodule").path
            let arguments =
                ["-c", "-wmo", "-o", scratch.appending(path: "\(name).o").path, "-emit-module"]
                + ["-emit-module-path", module, "-module-name", name, "-I", scratch.path]
            let errors = try Self.errors(arguments, files)
            #expect(errors.isEmpty, "\(name): \(errors)")
        }
    }

    private static func scratch() -> URL {
        FileManager.default.temporaryDirectory
            .appending(path: "portcullis-apple-\(UUID().uuidString)")
    }
}
