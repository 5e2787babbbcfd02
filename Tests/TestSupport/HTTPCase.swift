import Foundation

/// One line of the cases, written for this project: 582 in `Cases/cases.jsonl`, their octets in
/// base64, and 1538 in `Cases/more-cases.jsonl`, an octet for each character up to U+00FF.
struct HTTPCase: Decodable, Sendable {
    struct Part: Decodable {
        let b64: String?
        let repeat_b64: String?
        let raw: String?
        let `repeat`: String?
        let count: Int?

        var octets: [UInt8] {
            let repeated = HTTPCase.decode(repeat_b64) + HTTPCase.octets(`repeat`)
            var octets = HTTPCase.decode(b64) + HTTPCase.octets(raw)
            for _ in 0..<(count ?? 0) { octets += repeated }
            return octets
        }
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
        /// Of a request that is refused: whether its fault shows only behind the head. Where not,
        /// the origin sees nothing of it.
        let after_headers: Bool?
        let messages: [Message]?
        let upstream_complete: Int?
        let never_upstream: String?
        let strip_upstream: [String]?
        /// Names and values that the origin gets with the case's first request.
        let upstream_fields: [String: [String]]?
        /// Names of the trailers that the origin gets with it.
        let upstream_trailers: [String]?
        /// Of a response: what the client gets.
        let body: String?
        let interim: [Int]?
        let fields: [String: [String]]?
        let strip: [String]?
        /// Whether the origin ends the connection behind its octets.
        let origin_ends: Bool?
        /// Whether the origin answers before it has read the content.
        let early: Bool?
    }

    let id: String
    let category: String
    let direction: String
    let request_method: String?
    let raw_b64: String?
    let raw: String?
    let parts: [Part]?
    let segments: [Part]?
    let expect: Expectation

    /// The octets of each part, in order; delays are left out.
    var pieces: [[UInt8]] {
        let parts = (parts ?? []) + (segments ?? [])
        let pieces = [Self.decode(raw_b64), Self.octets(raw)] + parts.map(\.octets)
        return pieces.filter { !$0.isEmpty }
    }

    var octets: [UInt8] { pieces.reduce(into: []) { $0 += $1 } }

    private static func decode(_ text: String?) -> [UInt8] {
        guard let text, let data = Data(base64Encoded: text) else { return [] }
        return Array(data)
    }

    private static func octets(_ text: String?) -> [UInt8] {
        (text ?? "").unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }

    /// The cases that were given.
    static let given = load("cases")
    /// More of the same kinds, and what they leave out.
    static let more = load("more-cases")
    static let all = given + more

    /// The cases of a file in the folder beside this one; a line that is none is missing.
    private static func load(_ name: String) -> [HTTPCase] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Cases/\(name).jsonl")
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return [] }
        return text.split(separator: "\n").compactMap { line in
            try? JSONDecoder().decode(HTTPCase.self, from: Data(line.utf8))
        }
    }
}
