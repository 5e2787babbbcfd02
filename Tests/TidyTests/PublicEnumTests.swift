import Foundation
import Testing

/// An enum that grows breaks each `switch` over it in other packages. So each says whether it may.
@Suite struct PublicEnumTests {
    private static let root = URL(filePath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "../..").standardized

    /// The folders of the libraries that others use.
    private static let libraries = [
        "attestation/AppAttest", "attestation/DeviceKey", "attestation/KeyAttestation",
        "client/ClientRecipes", "client/PortcullisClient", "client/PortcullisClientTesting",
        "policy/RequestBinding", "tools/SoftwareAuthenticator",
    ]

    /// A library for the nested package of benchmarks, which no other package uses.
    private static let inner: Set<String> = ["Parts"]
    /// Recipes are copied, and are no library.
    private static let copied: Set<String> = ["ClientRecipes"]

    @Test func `the list has the libraries of the manifest`() throws {
        let manifest = try String(
            contentsOf: Self.root.appending(path: "Package.swift"),
            encoding: .utf8
        )
        let products = manifest.matches(of: /\.library\(name: "(\w+)"/).map { String($0.1) }
        let listed = Self.libraries.compactMap { $0.split(separator: "/").last.map(String.init) }
        #expect(Set(products).subtracting(Self.inner) == Set(listed).subtracting(Self.copied))
    }

    /// The enums with cases of a file, and whether each says what it is.
    private static func enums(_ text: String) -> [(line: String, isMarked: Bool)] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.trimmingCharacters(in: .whitespaces) }
        return lines.indices.compactMap { number in
            let line = lines[number]
            guard line.hasPrefix("public enum ") || line.hasPrefix("public indirect enum ") else {
                return nil
            }
            // One without cases holds functions: nothing can be switched over.
            let body = lines[number...].drop { !$0.hasSuffix("{") }.dropFirst()
            let next = body.first { !$0.hasPrefix("///") && !$0.isEmpty }
            guard next?.hasPrefix("case ") == true else { return nil }
            let before = lines[max(0, number - 5)..<number]
            let isFrozen =
                before.last == "@frozen" && before.contains { $0.hasPrefix("/// Frozen: ") }
            let mayGrow =
                before.contains { $0.hasPrefix("@nonexhaustive") }
                && before.contains { $0.hasPrefix("/// May grow: ") }
            return (line, isFrozen != mayGrow)
        }
    }

    @Test(arguments: libraries)
    func `each public enum is marked frozen, or as one that may grow, and says so`(
        library: String
    ) throws {
        let folder = Self.root.appending(path: "Sources/\(library)")
        let files = try #require(
            FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        )
        var count = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            for found in Self.enums(try String(contentsOf: file, encoding: .utf8)) {
                count += 1
                #expect(found.isMarked, "\(file.lastPathComponent): \(found.line)")
            }
        }
        #expect(count > 0 || library == "client/ClientRecipes")
    }

    @Test(arguments: [
        ("/// Frozen: two.\n@frozen\npublic enum A {\ncase a\n}", [true]),
        ("/// May grow: so.\n@nonexhaustive(warn)\npublic enum A {\n/// A.\ncase a\n}", [true]),
        ("/// Frozen: two.\npublic enum A {\ncase a\n}", [false]),
        ("@nonexhaustive\npublic enum A: Error {\n\ncase a\n}", [false]),
        ("public enum A {\npublic static let a = 1\n}", []),
        ("public enum A: String, Error,\nCodable\n{\ncase a\n}", [false]),
    ])
    func `an enum without its mark is found`(text: String, marked: [Bool]) {
        #expect(Self.enums(text).map(\.isMarked) == marked)
    }
}
