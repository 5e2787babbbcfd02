import Expectations
import Foundation
import Testing

/// The checks themselves: what has to be caught, and what has to pass.
@Suite struct SnippetTests {
    private static let manifest = Manifest(
        source: SwiftSource(
            path: "Package.swift",
            text: """
                let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
                let base: [Target.Dependency] = ["Encodings"]
                let storage: [Target.Dependency] = base + [
                    grdb,
                ]
                let package = Package(targets: [
                    .bridge("COpenSSL", links: ["ssl"]),
                    .part("Encodings"),
                    .part("HTTPWire", uses: []),
                    .part(
                        "SQLiteKeyStore",
                        uses: ["Encodings", grdb]
                    ),
                    .part("SoftwareAuthenticator", uses: ["HTTPWire"]),
                    .part("Gateway", uses: storage + ["SQLiteKeyStore"]),
                    .program("portcullis", uses: ["Gateway"]),
                    .program("demo", uses: ["SoftwareAuthenticator", "Gateway"]),
                    .recipes("Recipes", in: "client", uses: ["AlamofireStandIn"]),
                    .tests("HTTPWire", uses: ["Encodings"]),
                    .testTarget(name: "TidyTests", dependencies: []),
                ])
                """
        )
    )

    private func source(_ text: String, _ path: String = "Sources/http/HTTPWire/Item.swift")
        -> SwiftSource
    {
        SwiftSource(path: path, text: text)
    }

    private func tokenFindings(
        _ text: String,
        _ path: String = "Sources/http/HTTPWire/Item.swift"
    )
        -> [String]
    {
        TokenCheck(isProgram: false).findings(in: source(text, path)).map(\.text)
    }

    private func importFindings(_ text: String, _ path: String) -> [String] {
        ImportCheck(manifest: Self.manifest).findings(in: source(text, path)).map(\.text)
    }

    @Test func `the manifest's entries are read`() {
        expectEqual(Self.manifest["SQLiteKeyStore"]?.uses, ["Encodings", "GRDB"])
        let tests = Self.manifest["HTTPWireTests"]
        expectEqual(tests?.uses, ["Encodings", "HTTPWire", "Expectations"])
        expectEqual(tests?.kind, .tests)
        expectEqual(Self.manifest["COpenSSL"]?.kind, .cLibrary)
        expectEqual(Self.manifest["COpenSSL"]?.uses, [])
        expectEqual(Self.manifest["Gateway"]?.uses, ["Encodings", "GRDB", "SQLiteKeyStore"])
        expectEqual(Self.manifest["portcullis"]?.kind, .program)
        expectEqual(Self.manifest.targets.count, 11)
    }

    @Test func `a target with the name of a well-known package's module is caught`() {
        func names(_ text: String) -> [String] {
            let manifest = Manifest(source: source(text, "Package.swift"))
            return NameCheck.findings(in: manifest, sources: []).map(\.text)
        }
        let findings = names(".part(\"Configuration\"), .part(\"ConfigurationReading\")")
        expectEqual(findings.count, 1)
        expectEqual(findings.first?.hasPrefix("Configuration is a module"), true)
    }

    @Test func `what is linked is found through others`() {
        let check = ImportCheck(manifest: Self.manifest)
        #expect(check.shippedFindings(program: "portcullis").isEmpty)
        expectEqual(check.shippedFindings(program: "demo").count, 1)
    }

    @Test(arguments: [
        ("import Encodings", "Sources/keys/SQLiteKeyStore/A.swift"),
        ("package import GRDB", "Sources/keys/SQLiteKeyStore/A.swift"),
        ("internal import struct Encodings.Hex", "Sources/keys/SQLiteKeyStore/A.swift"),
        ("import Dispatch", "Sources/keys/SQLiteKeyStore/A.swift"),
        ("import Testing\n@testable import HTTPWire", "Tests/HTTPWireTests/A.swift"),
        ("import Alamofire", "Sources/client/Recipes/A.swift"),
        ("// import Dispatch", "Sources/http/HTTPWire/A.swift"),
        ("let text = \"import Dispatch\"", "Sources/http/HTTPWire/A.swift"),
    ])
    func `an allowed import passes`(text: String, path: String) {
        #expect(importFindings(text, path).isEmpty)
    }

    @Test func `Foundation is allowed for names alone, in the files that are listed`() throws {
        let path = try #require(Held.foundationFiles.keys.sorted().first)
        #expect(path.hasSuffix("ObjectRefusal+Foundation.swift"))
        let check = ImportCheck(manifest: Manifest(source: source(".part(\"AppAttest\")")))
        func imports(_ text: String, _ path: String) -> Int {
            check.findings(in: source(text, path)).count
        }
        expectEqual(imports("public import FoundationEssentials", path), 0)
        expectEqual(imports("public import Foundation", path), 0)
        expectEqual(imports("public import Dispatch", path), 1)
        expectEqual(imports("import Foundation", "Sources/attestation/AppAttest/A.swift"), 1)
        expectEqual(
            tokenFindings("init(_ date: Date) { Date(timeIntervalSince1970: 1) }", path),
            []
        )
        for text in ["Date()", "Date.now", "FileManager.default", "Data(contentsOf: file)"] {
            expectEqual(tokenFindings("let a = \(text)", path).count, 1, "\(text)")
        }
    }

    @Test(arguments: [
        ("import Encodings", "Sources/http/HTTPWire/A.swift", "does not declare"),
        (
            "internal import struct Encodings.Hex", "Sources/http/HTTPWire/A.swift",
            "does not declare"
        ),
        ("import Testing", "Sources/http/HTTPWire/A.swift", "does not declare"),
        ("import GRDB", "Tests/HTTPWireTests/A.swift", "does not declare"),
        ("import HTTPWire", "Sources/base/Elsewhere/A.swift", "no target"),
        ("import Dispatch", "Sources/http/HTTPWire/A.swift", "is pure"),
        ("internal import Foundation", "Sources/base/Encodings/A.swift", "is pure"),
        ("import EventLoops", "Sources/proxy/Proxy/Requests/Flow/A.swift", "is pure"),
        ("import GRDB", "Sources/gateway/Gateway/A.swift", "only SQLiteKeyStore"),
        ("import COpenSSL", "Sources/gateway/Gateway/A.swift", "only Cryptography and Signatures"),
        ("package import COpenSSL", "Sources/base/Cryptography/A.swift", "C types stay inside"),
        ("import CCurl", "Sources/gateway/Gateway/A.swift", "only Sources/gateway/"),
        ("import KeyStore", "Sources/gateway/Gateway/HTTPSCalls/A.swift", "does without"),
    ])
    func `a forbidden import is caught`(text: String, path: String, message: String) {
        #expect(importFindings(text, path).contains { $0.contains(message) })
    }

    @Test func `a type of a folder above is caught, and no member of that name`() {
        let sources = [
            source("struct Low { let a: High }", "Sources/a/A/Low/Low.swift"),
            source("let a = Other.High.b // High", "Sources/a/A/Low/Fine.swift"),
            source("enum High { case b(Low) }", "Sources/a/A/High/High.swift"),
            source("struct Root { let a: High }", "Sources/a/A/Root.swift"),
        ]
        let check = LayerCheck("Sources/a/A/", ["Low", "High"], sources)
        expectEqual(sources.flatMap(check.findings).map(\.path), ["Sources/a/A/Low/Low.swift"])
    }

    @Test(arguments: [
        "let a = !b", "if a != b {}", "guard !list.isEmpty else {}", "f(!a)", "// try! this",
        "let a = \"try! x!\"", "let a = #\"x! \"quoted\" y!\"#", "/* a /* b! */ c! */",
        "let a = \"\"\"\n    value!\n    \"\"\"", "func print(_ a: Int) {}", "writer.print(a)",
        "let a = b as? C", "@Test func `no sleep() is used`() {}", "func `x!`() {}",
        "// TO" + "DO(ada): use the span once 6.4 is out", "let sleep = 3",
        "let a = b ? !c : d",
    ])
    func `an allowed snippet passes`(text: String) {
        #expect(tokenFindings(text).isEmpty)
    }

    @Test(arguments: [
        ("let a = try! b()", "try!"), ("let a = b!", "by force"), ("let a = b()!.c", "by force"),
        ("let a = b[0]!", "by force"), ("let a = b as! C", "as?"), ("var a: Int!", "by force"),
        ("let a = \"\\(b!)\"", "by force"), ("let a = \"\\(f(\"x\") + b!)\"", "by force"),
        ("let a = b?.c!", "by force"), ("fatalError(\"no\")", "preconditionFailure"),
        ("DispatchQueue.global().async {}", "label"), ("print(a)", "Telemetry"),
        ("Thread.sleep(forTimeInterval: 1)", "clock"), ("usleep(3)", "clock"),
        ("try await Task.sleep(for: .seconds(1))", "clock"),
        ("// TO" + "DO: later", "owner"), ("// FIX" + "ME", "owner"),
        ("let now = ContinuousClock().now", "is pure"), ("let a = Mutex(1)", "is pure"),
        ("package let pointer: OpaquePointer", "C type"),
        ("struct A: @unchecked Sendable {}", "Held.swift"),
        ("nonisolated(unsafe) var a = 1", "Held.swift"),
        ("@exclusivity(unchecked) var a = 1", "Held.swift"),
    ])
    func `a forbidden snippet is caught`(text: String, message: String) {
        #expect(tokenFindings(text).contains { $0.contains(message) })
    }

    @Test func `tests may not sleep, and are named by their claim`() {
        let path = "Tests/HTTPWireTests/ItemTests.swift"
        expectEqual(tokenFindings("sleep(1)", path).count, 1)
        expectEqual(tokenFindings("@Test func itWorks() {}", path).count, 1)
        expectEqual(
            tokenFindings("@Test(arguments: [f(1)]) func itWorks(a: Int) {}", path).count,
            1
        )
        #expect(tokenFindings("@Test func `it works`() {}", path).isEmpty)
        #expect(tokenFindings("@Test(arguments: [f(1)]) func `it works`(a: Int) {}", path).isEmpty)
    }

    @Test func `tests neither count tries nor watch the clock themselves`() {
        let path = "Tests/HTTPWireTests/ItemTests.swift"
        expectEqual(tokenFindings("for _ in 0..<9 where a == b { c() }", path).count, 1)
        expectEqual(tokenFindings("while a, Date() < deadline { b() }", path).count, 1)
        expectEqual(tokenFindings("while ContinuousClock.now < deadline {}", path).count, 1)
        #expect(tokenFindings("for a in b where a.c { d() }", path).isEmpty)
        #expect(tokenFindings("for _ in 0..<9 { a { b where c } }", path).isEmpty)
    }

    @Test func `a held file still needs its proof`() throws {
        let path = try #require(Held.unchecked.keys.first)
        expectEqual(tokenFindings("final class A: @unchecked Sendable {}", path).count, 1)
        expectEqual(tokenFindings("/// A thing.\nclass A: @unchecked Sendable {}", path).count, 1)
        let proof = "/// `@unchecked Sendable`: constant.\n@dynamicMemberLookup\n"
        #expect(tokenFindings(proof + "class A: @unchecked Sendable {}", path).isEmpty)
        expectEqual(tokenFindings("nonisolated(unsafe) let a = b()", path).count, 1)
        #expect(tokenFindings("// Set once.\nnonisolated(unsafe) let a = b()", path).isEmpty)
        let values = try #require(Held.exclusivity.keys.first)
        #expect(tokenFindings("@exclusivity(unchecked) var a = 1", values).isEmpty)
    }

    @Test func `a program may print`() {
        let found = TokenCheck(isProgram: true).findings(in: source("print(1)"))
        #expect(found.isEmpty)
    }

    @Test func `long lines, functions, files and types are caught`() {
        let line = "let a = \"" + String(repeating: "x ", count: 50) + "\""
        expectEqual(SizeCheck.findings(in: source(line)).map(\.line), [1])
        let address = "    // https://example.com/" + String(repeating: "x", count: 90)
        #expect(SizeCheck.findings(in: source(address)).isEmpty)
        let accents = "// " + String(repeating: "é", count: 97)
        #expect(SizeCheck.findings(in: source(accents)).isEmpty)
        let body = String(repeating: "    a()\n", count: 69)
        expectEqual(SizeCheck.findings(in: source("func f() {\n\(body)}\n")).count, 1)
        expectEqual(SizeCheck.findings(in: source("init() {\n\(body)}\n")).count, 1)
        #expect(SizeCheck.findings(in: source("func f() {\n\(body.dropFirst(8))}\n")).isEmpty)
        let protocolText = "protocol P {\n    func f()\n    var a: Int { get }\n\(body)}\n"
        #expect(SizeCheck.findings(in: source(protocolText)).isEmpty)
        let lines = String(repeating: "\n", count: 601)
        expectEqual(SizeCheck.findings(in: source(lines)).count, 1)
        expectEqual(SizeCheck.findings(in: source(lines, "Tests/HTTPWireTests/A.swift")).count, 1)
        let folder = "Sources/http/HTTPWire"
        let parts = ["A", "A+B", "AB"].map {
            source(String(lines.dropLast(180)), "\(folder)/\($0).swift")
        }
        expectEqual(SizeCheck.types(parts).map(\.path), ["\(folder)/A.swift"])
        #expect(SizeCheck.types([parts[0], parts[2]]).isEmpty)
    }

    @Test(arguments: [
        ("struct Item {}", "Sources/http/HTTPWire/Item.swift"),
        ("extension Item {}", "Sources/http/HTTPWire/Item+Reading.swift"),
        ("extension Outer.Item {}", "Sources/http/HTTPWire/Item+Reading.swift"),
        ("extension Outer { struct Item {} }", "Sources/http/HTTPWire/Item.swift"),
        ("// The story.", "Sources/http/HTTPWire/HTTPWire.swift"),
        ("struct Handle {}\nstruct Item {}", "Sources/http/HTTPWire/Item.swift"),
        ("struct ManagedItem {}", "Tests/HTTPWireTests/ItemTests.swift"),
        ("struct KeyTypes {}", "Sources/http/HTTPWire/KeyTypes.swift"),
    ])
    func `a good name passes`(text: String, path: String) {
        #expect(NameCheck.findings(in: source(text, path)).isEmpty)
    }

    @Test(arguments: [
        ("struct Other {}", "Sources/http/HTTPWire/Item.swift"),
        ("struct Item {}", "Sources/http/HTTPWire/Other+Reading.swift"),
        ("struct ItemUtils {}", "Sources/http/HTTPWire/ItemUtils.swift"),
        ("struct Item {}\nclass SignalHandler {}", "Sources/http/HTTPWire/Item.swift"),
        ("struct Item {}", "Sources/http/HTTPWire/Helpers/Item.swift"),
        ("enum TestHelper {}", "Tests/HTTPWireTests/Support.swift"),
        ("struct Types {}", "Sources/http/HTTPWire/Types.swift"),
        ("struct Item {}", "Sources/http/HTTPWire/Item+Extensions.swift"),
    ])
    func `a bad name is caught`(text: String, path: String) {
        #expect(!NameCheck.findings(in: source(text, path)).isEmpty)
    }

    @Test func `a target tells its story and has no public namesake`() {
        let story = source("// What it is.", "Sources/http/HTTPWire/HTTPWire.swift")
        #expect(NameCheck.findings(in: Self.manifest, sources: [story]).isEmpty)
        let silent = source("let a = 1", "Sources/http/HTTPWire/HTTPWire.swift")
        expectEqual(NameCheck.findings(in: Self.manifest, sources: [silent]).count, 1)
        let missing = source("struct Item {}")
        expectEqual(NameCheck.findings(in: Self.manifest, sources: [missing]).count, 1)
        let namesake = source(
            "// So.\npublic struct HTTPWire {}",
            "Sources/http/HTTPWire/HTTPWire.swift"
        )
        expectEqual(NameCheck.findings(in: Self.manifest, sources: [namesake]).count, 1)
    }

    @Test func `targets that differ only in case are caught`() {
        let text = "[.part(\"Portcullis\"), .program(\"portcullis\", uses: [])]"
        let manifest = Manifest(source: SwiftSource(path: "Package.swift", text: text))
        expectEqual(NameCheck.findings(in: manifest, sources: []).count, 1)
    }

    private func platformFindings(_ text: String, _ path: String) -> Int {
        let check = PlatformCheck(
            manifest: Self.manifest,
            package: SwiftSource(path: "Package.swift", text: "[.macOS(.v13), .iOS(.v16)]"),
            linked: ["SoftwareAuthenticator"]
        )
        return check.findings(in: source(text, path)).count
    }

    @Test(arguments: [
        "let a = b.span", "f([1].span)", "let a: [UInt8]\nf(a.span)", "f(Array(a).span)",
        "_ = try UTF8Span(validating: a)", "let a = Mutex(1)", "import Synchronization",
        "let a = name.utf8Span", "String(validating: a, as: UTF8.self)",
    ])
    func `what only new systems have is caught in what an app links`(text: String) {
        expectEqual(platformFindings(text, "Sources/client/SoftwareAuthenticator/A.swift"), 1)
        expectEqual(platformFindings(text, "Sources/http/HTTPWire/A.swift"), 1)
        expectEqual(platformFindings(text, "Sources/base/Encodings/A.swift"), 0)
    }

    @Test(arguments: [
        "let a = ContiguousArray(b)\nf(a.span)", "f(ContiguousArray(a.utf8).span)",
        "func f(_ a: ContiguousArray<UInt8>) { g(a.span) }", "func f(_ a: Span<UInt8>) {}",
        "// UTF8Span\nlet a = \"Mutex\"",
    ])
    func `what old systems have too passes`(text: String) {
        expectEqual(platformFindings(text, "Sources/http/HTTPWire/A.swift"), 0)
    }

    @Test func `an API without a reason in the privacy manifest is caught`() throws {
        let list = """
            <plist version="1.0"><dict><key>NSPrivacyTracking</key><false/>
            <key>NSPrivacyTrackingDomains</key><array/>
            <key>NSPrivacyCollectedDataTypes</key><array/>
            <key>NSPrivacyAccessedAPITypes</key><array><dict>
            <key>NSPrivacyAccessedAPIType</key>
            <string>NSPrivacyAccessedAPICategoryFileTimestamp</string>
            <key>NSPrivacyAccessedAPITypeReasons</key><array><string>C617.1</string></array>
            </dict></array></dict></plist>
            """
        let check = try PrivacyCheck(propertyList: Data(list.utf8))
        #expect(check.isQuiet)
        let text = "let a = UserDefaults.standard\nlet b = c.modificationDate // UserDefaults"
        expectEqual(check.findings(in: source(text)).map(\.line), [1])
    }

    @Test(arguments: [
        "/// A thing.\npublic struct Item {}", "/// A thing.\n@frozen\npublic struct Item {}",
        "public import Encodings", "public extension Item {}", "package struct Item {}",
        "public static func == (a: A, b: A) -> Bool { true }", "struct Item {}",
        "public var description: String { \"\" }", "/// It.\npublic private(set) var a = 1",
    ])
    func `documented and inner names pass`(text: String) {
        #expect(DocumentationCheck.findings(in: source(text)).isEmpty)
    }

    @Test(arguments: [
        "public struct Item {}", "// A thing.\npublic struct Item {}",
        "/// A thing.\n\npublic let a = 1", "public init() {}", "public private(set) var a = 1",
        "public final class Item {}", "@frozen\npublic enum Item {}", "public static func f() {}",
    ])
    func `an undocumented public name is caught`(text: String) {
        expectEqual(DocumentationCheck.findings(in: source(text)).count, 1)
    }
}
