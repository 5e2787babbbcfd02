import Foundation
import Testing

/// One line of the shared file of HTTP/1.1 cases; what is not needed here is left out.
struct HTTPCase: Decodable, CustomTestStringConvertible {
    struct Part: Decodable {
        let b64: String?
        let repeat_b64: String?
        let count: Int?
    }

    struct Message: Decodable, Equatable {
        let method: String
        let target: String
        let body_len: Int
        let body_sha256: String
    }

    struct Expectation: Decodable {
        let action: String
        let status: [Int]?
        let messages: [Message]?
        let never_upstream: String?
    }

    let id: String
    let direction: String
    let request_method: String?
    let raw_b64: String?
    let parts: [Part]?
    let segments: [Part]?
    let then_b64: [String]?
    let expect: Expectation

    var testDescription: String { id }

    /// All octets in order, delays left out.
    var octets: [UInt8] {
        var octets = Self.decode(raw_b64)
        for part in (parts ?? []) + (segments ?? []) {
            octets += Self.decode(part.b64)
            for _ in 0..<(part.count ?? 0) { octets += Self.decode(part.repeat_b64) }
        }
        for next in then_b64 ?? [] { octets += Self.decode(next) }
        return octets
    }

    private static func decode(_ text: String?) -> [UInt8] {
        guard let text, let data = Data(base64Encoded: text) else { return [] }
        return Array(data)
    }
}

extension HTTPCase {
    /// The folder with the shared cases: beside the package, or where PORTCULLIS_SHARED says.
    static var folder: URL {
        if let path = ProcessInfo.processInfo.environment["PORTCULLIS_SHARED"] {
            return URL(fileURLWithPath: path)
        }
        var package = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        while package.path != "/",
            !FileManager.default.fileExists(
                atPath: package.appendingPathComponent("Package.swift").path
            )
        {
            package.deleteLastPathComponent()
        }
        return package.deletingLastPathComponent().appendingPathComponent("shared")
    }

    /// The cases of a direction; empty, and said so, when the shared folder is absent.
    static func all(_ direction: String) -> [HTTPCase] {
        let file = folder.appendingPathComponent("http-cases/cases.jsonl")
        guard let text = try? String(contentsOf: file, encoding: .utf8) else {
            print("HTTPWireTests: \(file.path) is absent; its cases are skipped")
            return []
        }
        return text.split(separator: "\n").compactMap { line in
            try? JSONDecoder().decode(HTTPCase.self, from: Data(line.utf8))
        }
        .filter { $0.direction == direction }
    }
}
