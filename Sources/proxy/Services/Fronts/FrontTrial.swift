import Cryptography
import Encodings

/// A request that the doctor sends through a front, and what it is to show.
package struct FrontTrial: Sendable {
    /// What is tried. The raw value is printed.
    package enum Kind: String, CaseIterable, Sendable {
        /// A GET with the fields of a proof.
        case plain
        /// A path and a query that proxies like to rewrite.
        case spelling
        /// A method that some proxies and applications let a field override.
        case method
        /// Fields as long as those of proofs with tokens.
        case fields
        /// The headers that rules sign.
        case headers
        /// A small content, with its length.
        case content
        /// The same in chunks.
        case chunks
        /// Content that is encoded.
        case gzip
        /// As much as the largest signed content may have.
        case large
    }

    package let kind: Kind
    package var method = "GET"
    /// What follows the id.
    package var path = ""
    package var query = ""
    /// Names and values. All but ``dropped`` have to arrive as they are.
    package var fields: [(name: String, value: String)] = []
    package var content: [UInt8] = []
    package var isChunked = false

    /// A field that the examples delete.
    private static let dropped = "X-HTTP-Method-Override"

    private init(_ kind: Kind) { self.kind = kind }

    /// The trials for rules that sign these headers, in lower case, and content up to a size; `nil`
    /// where none signs content.
    package static func all(headers: [String], contentMax: Int?) -> [FrontTrial] {
        var trials: [FrontTrial] = []
        func add(_ kind: Kind, _ fill: (inout FrontTrial) -> Void) {
            var trial = FrontTrial(kind)
            fill(&trial)
            trials.append(trial)
        }
        add(.plain) { $0.fields = proof }
        add(.spelling) { trial in
            trial.path = "/a//b/./%41/%2f%7E"
            trial.query = "?b=%2f&a=1;c&a=%41"
        }
        add(.method) { trial in
            trial.method = "DELETE"
            trial.fields = [(dropped, "PATCH")]
        }
        add(.fields) { trial in
            trial.fields = proof
            for name in ["App-Attest-Device-Token", "App-Attest-Integrity-Token"] {
                trial.fields.append((name, String(repeating: "t", count: 3_500)))
            }
        }
        // Each trial compares Host, which asks for the front and can't have another value.
        let others = headers.filter { $0 != "host" }
        if !others.isEmpty {
            add(.headers) { $0.fields = others.map { ($0, "portcullis-trial") } }
        }
        guard let contentMax else { return trials }
        add(.content) { $0.post(json) }
        add(.chunks) { trial in
            trial.post(json)
            trial.isChunked = true
        }
        add(.gzip) { trial in
            trial.post(packed)
            trial.fields.append(("Content-Encoding", "gzip"))
        }
        add(.large) { trial in
            let size = min(contentMax, Int(FrontTrials.contentMax))
            trial.post((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) })
        }
        return trials
    }

    /// As long as an assertion, which is about 150 bytes of Apple's and up to 1 KiB of others.
    private static let proof: [(name: String, value: String)] = [
        ("App-Attest-Key-Id", String(repeating: "k", count: 44)),
        ("App-Attest-Assertion", String(repeating: "a", count: 1_400)),
        ("App-Attest-Challenge", String(repeating: "c", count: 64)),
    ]
    /// What is written otherwise by a program that reads JSON and writes it again.
    private static let json = Array(#"{ "b" : 1.0, "a": "\u00e9\/", "a": [ ] }"#.utf8)
    /// A line of text, and what gzip makes of it.
    private static let text = Array("portcullis portcullis portcullis portcullis\n".utf8)
    private static let packed: [UInt8] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 255, 43, 200, 47, 42, 73, 46, 205, 201, 201, 44, 86, 40, 32,
        192, 228, 2, 0, 179, 200, 88, 231, 44, 0, 0, 0,
    ]

    private mutating func post(_ bytes: [UInt8]) {
        method = "POST"
        content = bytes
        let digest = Base64.text(SHA256.digest(of: bytes).array)
        fields = [("Content-Type", "application/json"), ("Content-Digest", "sha-256=:\(digest):")]
    }

    /// What the front has changed, in the order of the request.
    ///
    /// - target: path and query as they were sent.
    package func changes(_ seen: TrialSighting, target: String, host: String) -> [FrontChange] {
        var changes: [FrontChange] = []
        if seen.method != method { changes.append(.method(seen.method)) }
        let sent = target.split(separator: "?", maxSplits: 1)
        let came = seen.target.split(separator: "?", maxSplits: 1)
        if sent.first != came.first { changes.append(.path(seen.target)) }
        if sent.dropFirst().first != came.dropFirst().first { changes.append(.query(seen.target)) }
        if seen.host.lowercased() != host.lowercased() { changes.append(.host(seen.host)) }
        let compared = fields.filter { field in
            field.name != Self.dropped && !field.name.hasPrefix("Content-")
                || field.name == "Content-Digest"
        }
        let lost = compared.filter { seen.value($0.name) == nil }.map(\.name)
        if !lost.isEmpty { changes.append(.fieldsLost(lost)) }
        let other = compared.filter { field in
            seen.value(field.name).map { $0 != field.value } ?? false
        }
        if !other.isEmpty { changes.append(.fieldsRewritten(other.map(\.name))) }
        if !content.isEmpty { changes += contentChanges(seen) }
        return changes
    }

    private func contentChanges(_ seen: TrialSighting) -> [FrontChange] {
        guard let came = seen.content else { return [.contentCut(to: nil)] }
        func isDigest(of bytes: [UInt8]) -> Bool {
            came.digest == Hex.text(SHA256.digest(of: bytes).array)
        }
        if came.count == 0 { return [.contentLost] }
        guard isDigest(of: content) else {
            if kind == .gzip, isDigest(of: Self.text) { return [.contentDecoded] }
            let isPart =
                came.count < content.count && isDigest(of: Array(content.prefix(came.count)))
            return [isPart ? .contentCut(to: came.count) : .contentRewritten]
        }
        if !seen.isWhole { return [.contentUnsure] }
        return switch (isChunked, seen.framing) {
        case (true, "length"): [.lengthWritten]
        case (false, "chunked"): [.chunksWritten]
        default: []
        }
    }
}

/// What a front has changed of a request.
package enum FrontChange: Hashable, Sendable {
    case method(String)
    case path(String)
    case query(String)
    case host(String)
    case fieldsLost([String])
    case fieldsRewritten([String])
    /// None of it came.
    case contentLost
    /// The beginning came; `nil` where it is not known how much.
    case contentCut(to: Int?)
    /// It came as it is without its `Content-Encoding`.
    case contentDecoded
    case contentRewritten
    /// All of it came, and the front does not say so in the form that counts.
    case contentUnsure
    /// It came with a length in place of chunks: no signature covers either.
    case lengthWritten
    case chunksWritten
}
