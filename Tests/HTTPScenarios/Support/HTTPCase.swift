import Foundation

/// One line of the cases in `Cases/cases.jsonl`, 582 of them, written for this project.
struct HTTPCase: Decodable, Sendable {
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
        let upstream_complete: Int?
        let never_upstream: String?
        let strip_upstream: [String]?
    }

    let id: String
    let category: String
    let direction: String
    let request_method: String?
    let raw_b64: String?
    let parts: [Part]?
    let segments: [Part]?
    let expect: Expectation

    /// The octets of each part, in order; delays are left out.
    var pieces: [[UInt8]] {
        var pieces = [Self.decode(raw_b64)]
        for part in (parts ?? []) + (segments ?? []) {
            pieces.append(Self.decode(part.b64))
            let repeated = Self.decode(part.repeat_b64)
            pieces.append([UInt8](repeatElement(repeated, count: part.count ?? 0).joined()))
        }
        return pieces.filter { !$0.isEmpty }
    }

    var octets: [UInt8] { Array(pieces.joined()) }

    private static func decode(_ text: String?) -> [UInt8] {
        guard let text, let data = Data(base64Encoded: text) else { return [] }
        return Array(data)
    }

    /// All cases, from the file beside this folder.
    static let all: [HTTPCase] = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Cases/cases.jsonl")
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return [] }
        return text.split(separator: "\n").compactMap { line in
            try? JSONDecoder().decode(HTTPCase.self, from: Data(line.utf8))
        }
    }()
}
