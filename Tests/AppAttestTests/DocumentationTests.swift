import Expectations
import Foundation
import Testing

/// The catalogs of the products: the code of AppAttest.docc and KeyAttestation.docc is code that is
/// compiled and run, and all links lead somewhere.
@Suite struct DocumentationTests {
    private static let root = URL(filePath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "../..").standardized

    private static func lines(_ file: URL) throws -> [String] {
        try String(contentsOf: file, encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.trimmingCharacters(in: .whitespaces) }
    }

    /// The code blocks of the catalog that are marked as Swift.
    private static func blocks(of catalog: URL) throws -> [(file: String, lines: [String])] {
        var blocks: [(String, [String])] = []
        let names = try FileManager.default.contentsOfDirectory(atPath: catalog.path).sorted()
        for name in names where name.hasSuffix(".md") {
            var block: [String]?
            for line in try lines(catalog.appending(path: name)) {
                if line == "```swift" {
                    block = []
                } else if line == "```", let found = block {
                    blocks.append((name, found))
                    block = nil
                } else {
                    block?.append(line)
                }
            }
        }
        return blocks
    }

    @Test(arguments: [
        ("AppAttest", "AppAttestServer/DeviceRegistry"),
        ("KeyAttestation", "KeyAttestationServer/PhoneRegistry"),
    ])
    func `each block of code in the documentation is part of the server that tests run`(
        module: String,
        server: String
    ) throws {
        let source = Self.root.appending(path: "Tests/Sample/Sources/\(server).swift")
        let code = try Self.lines(source)
        let catalog = Self.root
            .appending(path: "Sources/attestation/\(module)/\(module).docc")
        let blocks = try Self.blocks(of: catalog)
        #expect(blocks.count >= 6)
        for (file, lines) in blocks {
            let isPart = code.indices.contains { start in
                code[start...].starts(with: lines)
            }
            #expect(isPart, "\(file): not in \(source.lastPathComponent): \(lines.first ?? "")")
        }
    }

    /// The folder with the modules of this build, beside the bundle of the tests.
    private static let modules = URL(filePath: CommandLine.arguments[0])
        .deletingLastPathComponent()

    /// The symbol graph of a module: everything public that it declares, as a file in a folder.
    private static func symbols(of module: String, in folder: URL) throws -> Data {
        let maps = try FileManager.default.contentsOfDirectory(atPath: modules.path)
            .map { modules.appending(path: $0).appending(path: "module.modulemap").path }
            .filter { FileManager.default.fileExists(atPath: $0) }
        // Build folder: scratch path, architecture, configuration.
        let scratch = modules.appending(path: "../..").standardized
        let crypto = scratch.appending(path: "checkouts/swift-crypto/Sources")
        let headers = ["CCryptoBoringSSL", "CCryptoBoringSSLShims"].map {
            crypto.appending(path: $0).appending(path: "include/module.modulemap").path
        }
        let imported = (maps + headers).flatMap { ["-Xcc", "-fmodule-map-file=" + $0] }
        let (status, printed) = try run(
            [
                "swift", "symbolgraph-extract", "-module-name", module,
                "-target", architecture + "-unknown-linux-gnu",
                "-I", modules.appending(path: "Modules").path, "-output-dir", folder.path,
                "-minimum-access-level", "public",
            ] + imported
        )
        expectEqual(status, 0, "\(printed)")
        return try Data(contentsOf: folder.appending(path: module + ".symbols.json"))
    }

    private static var architecture: String {
        #if arch(arm64)
            "aarch64"
        #else
            "x86_64"
        #endif
    }

    /// Gives a folder to the body and removes it.
    private static func withFolder(_ body: (URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-documentation-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder)
    }

    /// The targets that have a catalog, as `group/target`.
    private static let documented = [
        "attestation/AppAttest", "attestation/KeyAttestation", "client/PortcullisClient",
        "client/PortcullisClientTesting", "policy/RequestBinding",
        "tools/SoftwareAuthenticator",
    ]

    @Test func `every catalog below Sources is compiled by a test`() throws {
        let sources = Self.root.appending(path: "Sources")
        let names = try FileManager.default.subpathsOfDirectory(atPath: sources.path)
        let targets = names.filter { $0.hasSuffix(".docc") }
            .map { $0.split(separator: "/").dropLast().joined(separator: "/") }
        expectEqual(targets.sorted(), Self.documented)
    }

    @Test(arguments: documented)
    func `a catalog is compiled without a warning, and every link leads somewhere`(
        target: String
    ) throws {
        let module = try #require(target.split(separator: "/").last).description
        let catalog = Self.root.appending(path: "Sources/\(target)/\(module).docc")
        try Self.withFolder { folder in
            _ = try Self.symbols(of: module, in: folder)
            let (status, printed) = try Self.run([
                "docc", "convert", catalog.path, "--additional-symbol-graph-dir", folder.path,
                "--output-path", folder.appending(path: "output").path,
                "--fallback-display-name", module,
                "--fallback-bundle-identifier", module, "--warnings-as-errors",
            ])
            expectEqual(status, 0, "\(printed)")
        }
    }

    /// What `import AppAttest` shows of a target that is no product. AppAttest.swift exports it.
    private static let exported: Set<String> = [
        "s:10Signatures13P256PublicKeyV", "s:10Signatures15X509CertificateC",
        "s:10Signatures20X509CertificateErrorV", "s:10Signatures8UnixTimeV",
    ]

    private struct Graph: Decodable {
        struct Symbol: Decodable {
            struct Fragment: Decodable { let preciseIdentifier: String? }

            let pathComponents: [String]
            let declarationFragments: [Fragment]
        }

        let symbols: [Symbol]
    }

    @Test(arguments: ["AppAttest", "DeviceKey", "RequestBinding", "SoftwareAuthenticator"])
    func `no signature of a product names a type of a target that is none`(module: String)
        throws
    {
        let products = [
            "AppAttest", "DeviceKey", "KeyAttestation", "RequestBinding", "SoftwareAuthenticator",
        ]
        let built = try FileManager.default
            .contentsOfDirectory(atPath: Self.modules.appending(path: "Modules").path)
            .filter { $0.hasSuffix(".swiftmodule") }.map { String($0.dropLast(12)) }
        #expect(built.contains("Signatures"))
        // The start of a mangled name: the length of the module's name, and the name.
        let starts = built.filter { !products.contains($0) }.map { "s:\($0.count)\($0)" }
        try Self.withFolder { folder in
            let graph = try JSONDecoder().decode(
                Graph.self,
                from: Self.symbols(of: module, in: folder)
            )
            #expect(graph.symbols.count > 10)
            for symbol in graph.symbols {
                let names = symbol.declarationFragments.compactMap(\.preciseIdentifier)
                let foreign = names.filter { name in
                    !Self.exported.contains(name) && starts.contains { name.hasPrefix($0) }
                }
                let place = symbol.pathComponents.joined(separator: ".")
                #expect(foreign.isEmpty, "\(module): \(place) names \(foreign)")
            }
        }
    }

    /// Runs a program of the toolchain that stands in the path.
    private static func run(_ arguments: [String]) throws -> (status: Int32, printed: String) {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let printed = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: printed, as: UTF8.self))
    }
}
