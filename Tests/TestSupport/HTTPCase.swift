import Foundation

/// One line of the cases, written for this project: 582 in `Cases/cases.jsonl`, their bytes in
/// base64, and 1538 in `Cases/more-cases.jsonl`, a byte for each character up to U+00FF.
package struct HTTPCase: Decodable, Sendable, CustomStringConvertible {
    package struct Part: Decodable {
        package let b64: String?
        package let repeat_b64: String?
        package let raw: String?
        package let `repeat`: String?
        package let count: Int?

        package var bytes: [UInt8] {
            let repeated = HTTPCase.decode(repeat_b64) + HTTPCase.bytes(`repeat`)
            var bytes = HTTPCase.decode(b64) + HTTPCase.bytes(raw)
            for _ in 0..<(count ?? 0) { bytes += repeated }
            return bytes
        }
    }

    package struct Message: Decodable, Equatable {
        package let method: String
        package let target: String
        package let body_len: Int
        package let body_sha256: String

        package init(method: String, target: String, body_len: Int, body_sha256: String) {
            self.method = method
            self.target = target
            self.body_len = body_len
            self.body_sha256 = body_sha256
        }
    }

    package struct Expectation: Decodable {
        package let action: String
        package let status: [Int]?
        /// Of a request that is refused: whether its fault shows only behind the head. Where not,
        /// the origin sees nothing of it.
        package let after_headers: Bool?
        package let messages: [Message]?
        package let upstream_complete: Int?
        package let never_upstream: String?
        package let strip_upstream: [String]?
        /// Names and values that the origin gets with the case's first request.
        package let upstream_fields: [String: [String]]?
        /// Names of the trailers that the origin gets with it.
        package let upstream_trailers: [String]?
        /// Of a response: what the client gets.
        package let body: String?
        package let interim: [Int]?
        package let fields: [String: [String]]?
        package let strip: [String]?
        /// Whether the origin ends the connection behind its bytes.
        package let origin_ends: Bool?
        /// Whether the origin answers before it has read the content.
        package let early: Bool?
    }

    package let id: String
    package let category: String
    package let direction: String
    package let request_method: String?
    package let raw_b64: String?
    package let raw: String?
    package let parts: [Part]?
    package let segments: [Part]?
    package let expect: Expectation

    /// The bytes of each part, in order; delays are left out.
    package var pieces: [[UInt8]] {
        let parts = (parts ?? []) + (segments ?? [])
        let pieces = [Self.decode(raw_b64), Self.bytes(raw)] + parts.map(\.bytes)
        return pieces.filter { !$0.isEmpty }
    }

    package var bytes: [UInt8] { pieces.reduce(into: []) { $0 += $1 } }

    package var description: String { id }

    private static func decode(_ text: String?) -> [UInt8] {
        guard let text, let data = Data(base64Encoded: text) else { return [] }
        return Array(data)
    }

    private static func bytes(_ text: String?) -> [UInt8] {
        (text ?? "").unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }

    /// The cases that were given.
    package static let given = load("cases")
    /// More of the same kinds, and what they leave out.
    package static let more = load("more-cases")
    package static let all = given + more

    /// The cases of a file of the HTTP scenarios; a line that is none is missing.
    private static func load(_ name: String) -> [HTTPCase] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("HTTPScenarios/Cases/\(name).jsonl")
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return [] }
        return text.split(separator: "\n").compactMap { line in
            try? JSONDecoder().decode(HTTPCase.self, from: Data(line.utf8))
        }
    }
}

extension HTTPCase {
    /// Cases that the gateway judges otherwise, each with its reason, wherever they are played.
    package static let divergences: [String: String] = [
        "own-conn-03":
            "Connection names what is meant for more than one hop, which is answered 400",
        "own-clx-20": "as own-conn-03",
        "own-tex-22": "as own-conn-03",
        "own-conn-04": "as own-conn-03",
        "own-conn-05": "as own-conn-03",
        "own-conn-06": "as own-conn-03",
        "own-conn-07": "as own-conn-03",
        "own-conn-08": "as own-conn-03",
        "own-conn-09": "as own-conn-03",
        "own-conn-10": "as own-conn-03",
        "own-rsp-fold": "obs-fold in a response is answered 502, the other way of RFC 9112 §5.2 ¶4",
    ]
}
