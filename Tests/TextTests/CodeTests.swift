import Expectations
import Foundation
import LoopbackKit
import Testing

/// The Swift in the texts is code that compiles.
///
/// No copy of it is kept. Each block becomes a function whose parameters are the names that the
/// text takes for granted, and the compiler checks all of them at once, against the modules of this
/// build.
@Suite struct CodeTests {
    /// Where another test compiles and runs the blocks (`DocumentationTests`).
    private static let others = "Sources/attestation/"

    /// What the texts take for granted.
    private static let parameters = """
        session: PortcullisSession, configuration: inout PortcullisConfiguration,
        request: URLRequest, signed: SignedRequest, answer: HTTPURLResponse,
        background: URLSession, endpoints: URL, planFile: URL, authorityFile: URL,
        authority: TestAuthority, gateway: URL,
        folder: URL, file: URL, seed: [UInt8], content: [UInt8], sha256OfTheContent: [UInt8],
        hashOfTheChallenge: [UInt8], challenge: String, now: UnixTime,
        transport: any ClientTransport, tokens: any ClientMiddleware,
        signing: AlamofireSigning, api: Session
        """

    /// What Apple's systems alone have: the declarations of these types, with the initialisers
    /// that their source has.
    private static let appleOnly = [
        (
            "Sources/client/PortcullisClient/Service/AttestationService.swift",
            """
            struct AppAttestService: AttestationService {
                var isSupported: Bool { false }
                func generateKey() async throws(AttestationServiceError) -> String {
                    throw .featureUnsupported
                }
                func attestKey(
                    _: String, clientDataHash: Data
                ) async throws(AttestationServiceError) -> Data { throw .featureUnsupported }
                func generateAssertion(
                    _: String, clientDataHash: Data
                ) async throws(AttestationServiceError) -> Data { throw .featureUnsupported }

            """
        ),
        (
            "Sources/client/PortcullisClient/Store/KeychainEnrolmentStore.swift",
            """
            struct KeychainEnrolmentStore: EnrolmentStore {
                func read() async throws -> Data? { nil }
                func replace(_: Data?, with: Data?) async throws -> Bool { false }

            """
        ),
    ]

    private struct Block {
        let path: String
        let line: Int
        let lines: [String]

        /// Whether it is a part of a Package.swift.
        var isManifest: Bool { lines.contains { $0.hasPrefix(".package(") } || isProduct }
        private var isProduct: Bool { lines.first?.hasPrefix(".product(") == true }
    }

    /// All blocks of Swift in the repository's texts and documentation comments.
    private static func blocks() throws -> [Block] {
        let sources = Repository.folder.appending(path: "Sources").path
        let names = try FileManager.default.subpathsOfDirectory(atPath: sources)
            .filter { $0.hasSuffix(".md") || $0.hasSuffix(".swift") }
            .map { "Sources/\($0)" }
        let texts = Set(names + Repository.texts).filter { !$0.hasPrefix(others) }
        return try texts.sorted().flatMap { path in
            try Document(path).blocks.filter { $0.kind == "swift" }.map {
                Block(path: path, line: $0.line + 1, lines: $0.lines)
            }
        }
    }

    /// The initialisers that a source declares as public, each with an empty body.
    private static func initialisers(in path: String) throws -> [String] {
        let file = Repository.folder.appending(path: path)
        return try String(contentsOf: file, encoding: .utf8)
            .matches(of: /public (init\([^)]*\))/).map { "\($0.1) {}\n" }
    }

    private static func code(_ blocks: [Block]) throws -> String {
        var code = """
            import AlamofireStandIn
            import ApolloStandIn
            import AppAttest
            @testable import ClientRecipes
            import Cryptography
            import Foundation
            import FoundationNetworking
            import OpenAPIRuntimeStandIn
            import PortcullisClient
            import PortcullisClientTesting
            import RequestBinding
            import SoftwareAuthenticator

            /// As swift-openapi-generator makes it.
            struct Client {
                init(
                    serverURL: URL, transport: any ClientTransport,
                    middlewares: [any ClientMiddleware] = []
                ) {}
            }

            """
        for (path, declaration) in appleOnly {
            let initialisers = try initialisers(in: path)
            #expect(!initialisers.isEmpty, "\(path)")
            code += declaration + initialisers.joined() + "}\n"
        }
        for (number, block) in blocks.enumerated() {
            code += "func block\(number)(\(parameters)) async throws {\n"
            code += "#sourceLocation(file: \"\(block.path)\", line: \(block.line))\n"
            // What is left out leaves the function.
            code += block.lines.joined(separator: "\n").replacing("{ … }", with: "{ return }")
            code += "\n#sourceLocation()\n}\n"
        }
        return code
    }

    private static func manifest(_ blocks: [Block]) -> String {
        var code = "import PackageDescription\n"
        for (number, block) in blocks.enumerated() {
            code += "func block\(number)() {\n"
            code += "#sourceLocation(file: \"\(block.path)\", line: \(block.line))\n"
            for (kind, type) in [("package", "Package"), ("product", "Target")] {
                let lines = block.lines.filter { $0.hasPrefix(".\(kind)(") }
                code += "let _: [\(type).Dependency] = [\n"
                code += lines.joined(separator: "\n") + "\n]\n"
            }
            code += "#sourceLocation()\n}\n"
        }
        return code
    }

    /// What the compiler says of a text; nothing when it has no error.
    private static func errors(_ code: String, _ arguments: [String]) throws -> String {
        let file = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-texts-\(UUID().uuidString).swift")
        try code.write(to: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: file) }
        let swiftc = try #require(ChildProcess.tool("swiftc"))
        let outcome = try ChildProcess.run(
            swiftc,
            ["-typecheck", "-parse-as-library", "-suppress-warnings", "-swift-version", "6"]
                + arguments + [file.path],
            patience: Self.compilerPatience
        )
        return outcome.status == 0 ? "" : outcome.complained + outcome.printed
    }

    /// In seconds: a compiler takes minutes where the machine has other work.
    static let compilerPatience: TimeInterval = 600

    /// Where the modules of this build are, and the C modules that they import.
    static func modules() throws -> [String] {
        let programs = Repository.programs.absoluteURL.resolvingSymlinksInPath()
        let maps = try FileManager.default.contentsOfDirectory(atPath: programs.path)
            .map { programs.appending(path: "\($0)/module.modulemap").path }
            .filter { FileManager.default.fileExists(atPath: $0) }
        // Build folder: scratch path, architecture, configuration.
        let crypto = programs.appending(path: "../../checkouts/swift-crypto/Sources").standardized
        let headers = ["CCryptoBoringSSL", "CCryptoBoringSSLShims"].map {
            crypto.appending(path: "\($0)/include/module.modulemap").path
        }
        return ["-I", programs.appending(path: "Modules").path]
            + (maps + headers).flatMap { ["-Xcc", "-fmodule-map-file=" + $0] }
    }

    @Test func `each block of Swift in a text compiles`() throws {
        let blocks = try Self.blocks().filter { !$0.isManifest }
        #expect(blocks.count >= 11)
        let errors = try Self.errors(Self.code(blocks), Self.modules())
        #expect(errors.isEmpty, "\(errors)")
    }

    /// What apps are compiled with, by Xcode's templates and by older projects.
    @Test(arguments: [
        ["-swift-version", "5"], ["-swift-version", "6"],
        ["-swift-version", "6", "-default-isolation", "MainActor"],
        [
            "-swift-version", "6", "-default-isolation", "MainActor", "-enable-upcoming-feature",
            "NonisolatedNonsendingByDefault",
        ],
    ])
    func `each recipe compiles with the settings of an app`(settings: [String]) throws {
        let folder = Repository.folder.appending(path: "Sources/client/ClientRecipes").path
        let files = try FileManager.default.contentsOfDirectory(atPath: folder)
            .filter { $0.hasSuffix(".swift") }.map { "\(folder)/\($0)" }
        #expect(files.count >= 4)
        let standIns = ["Alamofire", "Apollo", "OpenAPIRuntime"]
            .flatMap { ["-module-alias", "\($0)=\($0)StandIn"] }
        let outcome = try ChildProcess.run(
            try #require(ChildProcess.tool("swiftc")),
            ["-typecheck", "-parse-as-library", "-module-name", "Shop", "-warnings-as-errors"]
                + settings + standIns + Self.modules() + files,
            patience: Self.compilerPatience
        )
        expectEqual(outcome.status, 0, "\(outcome.complained)")
    }

    @Test func `each part of a manifest in a text is one of a manifest`() throws {
        let blocks = try Self.blocks().filter(\.isManifest)
        #expect(blocks.count >= 2)
        let swiftc = URL(filePath: try #require(ChildProcess.tool("swiftc")))
            .resolvingSymlinksInPath()
        let library = swiftc.appending(path: "../../lib/swift/pm/ManifestAPI").standardized
        let arguments = ["-I", library.path, "-package-description-version", "6.2"]
        let errors = try Self.errors(Self.manifest(blocks), arguments)
        #expect(errors.isEmpty, "\(errors)")
    }
}
