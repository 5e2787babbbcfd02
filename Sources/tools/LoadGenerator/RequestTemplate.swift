import ConfigurationReading
import Cryptography
import Encodings
import HTTPWire
import RequestBinding
import Rules

/// The bytes of a request without its proof, and the signed part of them.
struct RequestTemplate: Sendable {
    /// One size of content.
    struct Content: Sendable {
        /// As framed on the wire; empty for no content.
        var bytes: [UInt8] = []
        /// The bytes with one byte changed.
        var changed: [UInt8] = []
        /// The content itself, inside its framing.
        var plain: Range<Int> = 0..<0
        /// Where the text of a challenge goes.
        var challengePlace: Range<Int>?
        /// The fields about the content, and the blank line.
        var fields: [UInt8] = []
        /// The signed lines, up to and including the digest.
        var linesBefore: [UInt8] = []
        /// SHA-256 of the client data, if they hold no challenge.
        var fixedHash: [UInt8]?
    }

    let demand: RequestDemand
    /// Request line, host and the user's fields.
    let start: [UInt8]
    /// The start with another target.
    let otherStart: [UInt8]
    private(set) var contents: [Content]
    /// The fields that the rule wants signed, in its order.
    private let signedFields: [(name: [UInt8], values: [[UInt8]])]

    /// Characters of a challenge.
    static let challengeCount = 56

    init(
        _ demand: RequestDemand,
        method: String,
        target: String,
        host: String,
        fields: [(name: String, value: String)],
        content: ContentPlan
    ) {
        self.demand = demand
        func head(_ target: String) -> [UInt8] {
            let rest = [("Host", host)] + fields.filter { $0.name.lowercased() != "host" }
            let lines = rest.map { "\($0.0): \($0.1)\r\n" }.joined()
            return Array("\(method) \(target) HTTP/1.1\r\n\(lines)".utf8)
        }
        start = head(target)
        // Matching ignores the query, so the rule also judges this target.
        otherStart = head(target + (target.contains("?") ? "&" : "?") + "changed=1")
        if case .lines(_, let names) = demand.signing {
            signedFields = names.map { name in
                let given = fields.filter { $0.name.lowercased() == name }.map(\.value)
                let values = name == "host" ? [host] : given
                return (Array(name.utf8), values.map { Array($0.utf8) })
            }
        } else {
            signedFields = []
        }
        contents = content.sizes.map { size in
            var made = Self.content(size, demand, isChunked: content.isChunked)
            Self.describe(&made, demand, method: method, target: target, content.isChunked)
            return made
        }
        var signer = ContentHasher()
        for index in contents.indices where demand.challenge == nil {
            contents[index].fixedHash = signer.hash(self, contents[index], challenge: nil)
        }
    }

    var hasContent: Bool { contents.contains { !$0.plain.isEmpty } }

    /// Letters in a row, or a JSON text with a place for a challenge.
    private static func content(_ size: Int, _ demand: RequestDemand, isChunked: Bool) -> Content {
        var made = Content()
        var plain: [UInt8]
        var changedAt = 0
        var challengeAt: Int?
        if case .jsonPointer(let pointer) = demand.challenge {
            let filler = pointer.tokens.first == "filling" ? "filler" : "filling"
            let names = pointer.tokens.map { "{\(JSONValue.string($0).line):" }.joined()
            plain = Array((names + "\"").utf8)
            challengeAt = plain.count
            plain += [UInt8](repeating: UInt8(ascii: "A"), count: challengeCount)
            plain += Array("\"".utf8)
            plain += [UInt8](repeating: UInt8(ascii: "}"), count: pointer.tokens.count - 1)
            plain += Array(",\"\(filler)\":\"".utf8)
            changedAt = plain.count
            plain += letters(max(size - plain.count - 2, 1)) + Array("\"}".utf8)
        } else {
            plain = letters(size)
        }
        guard !plain.isEmpty else { return made }
        var framed: [UInt8] = []
        if isChunked { ChunkWriter.beginChunk(plain.count, into: &framed) }
        made.plain = framed.count..<framed.count + plain.count
        made.challengePlace = challengeAt.map {
            $0 + framed.count..<$0 + framed.count + challengeCount
        }
        framed += plain
        if isChunked {
            ChunkWriter.endChunk(into: &framed)
            ChunkWriter.end(into: &framed)
        }
        made.bytes = framed
        made.changed = framed
        made.changed[made.plain.lowerBound + changedAt] ^= 1
        return made
    }

    private static func letters(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    }

    /// The fields about the content, and the lines that all requests share.
    private static func describe(
        _ made: inout Content,
        _ demand: RequestDemand,
        method: String,
        target: String,
        _ isChunked: Bool
    ) {
        let digest = SHA256.digest(of: Array(made.bytes[made.plain])).array
        var fields = ""
        if !made.plain.isEmpty {
            fields =
                isChunked
                ? "Transfer-Encoding: chunked\r\n" : "Content-Length: \(made.plain.count)\r\n"
            if demand.declaresDigest {
                fields += "Content-Digest: sha-256=:\(Base64.text(digest)):\r\n"
            }
        } else if ["POST", "PUT", "PATCH"].contains(method) {
            // RFC 9110 §8.6: requests with these methods announce that they have no content.
            fields = "Content-Length: 0\r\n"
        }
        made.fields = Array((fields + "\r\n").utf8)
        guard case .lines(let parts, _) = demand.signing else { return }
        var lines = RequestLines()
        let (method, target) = (Array(method.utf8), Array(target.utf8))
        lines.begin(parts, method: method.span)
        lines.target(target.span)
        lines.digest(digest.span)
        made.linesBefore = lines.bytes
    }

    /// Writes the lines after the digest.
    func finish(_ lines: inout RequestLines, challenge: Span<UInt8>?) {
        lines.challenge(challenge)
        for field in signedFields {
            lines.header(field.name.span)
            for value in field.values { lines.value(value.span) }
            lines.endHeader()
        }
    }
}

/// The size and the framing of the requests' content.
package struct ContentPlan: Equatable, Sendable {
    /// Bytes; 0 for no content.
    package let sizes: [Int]
    package let isChunked: Bool

    /// The most bytes of content: memory holds each size twice, original and changed.
    package static let sizeMax = 64 << 20
    /// A range is sent as this number of sizes, evenly spread; the bytes of each are made once.
    private static let stepsMax = 16

    package static let none = ContentPlan(0...0, isChunked: false)

    package init(_ range: ClosedRange<Int>, isChunked: Bool) {
        let span = range.upperBound - range.lowerBound
        let steps = min(span, Self.stepsMax - 1)
        sizes = (0...steps).map { range.lowerBound + (steps == 0 ? 0 : span / steps * $0) }
        self.isChunked = isChunked
    }

    /// Reads `200` or `100..2000`.
    package init?(_ text: String, isChunked: Bool) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let ends = [parts.first, parts.last].compactMap { $0.flatMap { Int($0) } }
        guard parts.count == 1 || (parts.count == 3 && parts[1].isEmpty), ends.count == 2,
            ends[0] >= 0, ends[0] <= ends[1], ends[1] <= Self.sizeMax
        else { return nil }
        self.init(ends[0]...ends[1], isChunked: isChunked)
    }
}

/// Makes the hash that a device signs, and keeps its scratch memory.
struct ContentHasher: Sendable {
    private var lines = RequestLines()
    private var content: [UInt8] = []

    /// SHA-256 of the client data of a request.
    ///
    /// - `challenge`: the text, where one is sent.
    mutating func hash(
        _ template: RequestTemplate,
        _ made: RequestTemplate.Content,
        challenge: [UInt8]?
    ) -> [UInt8] {
        if let fixed = made.fixedHash { return fixed }
        switch template.demand.signing {
        case .lines(let parts, _):
            lines.resume(behind: made.linesBefore, parts, hasDigest: true)
            if let challenge {
                template.finish(&lines, challenge: challenge.span)
            } else {
                template.finish(&lines, challenge: nil)
            }
            return SHA256.digest(of: lines.bytes).array
        case .content:
            content.removeAll(keepingCapacity: true)
            content += made.bytes
            if let place = made.challengePlace, let challenge {
                content.replaceSubrange(place, with: challenge)
            }
            return SHA256.digest(content.span.extracting(made.plain)).array
        case .challenge: return SHA256.digest(of: challenge ?? []).array
        }
    }
}

/// The demands of a rule on the requests.
struct RequestDemand: Sendable {
    let signing: SigningForm
    /// The place of the challenge; `nil` when none is sent. An optional one is not sent.
    let challenge: ChallengeSource?
    let fields: FieldNames
    /// The head declares the digest of the content.
    let declaresDigest: Bool
    /// The field of a token of Play Integrity, which phones show; empty where none is shown.
    var tokenField: [UInt8] = []
    /// Requests of one device that may be under way together.
    let underWayMax: Int

    /// - `underWayMax`: the user's choice; `nil` for one.
    init(_ rule: Rule, underWayMax: Int? = nil) {
        signing = rule.signing
        challenge = rule.challenge == .required ? rule.challengeSource : nil
        fields = rule.fields
        declaresDigest = if case .lines = rule.signing { rule.signing.coversBody } else { false }
        switch rule.counter {
        case .strict: self.underWayMax = 1
        // The oldest of n requests under way is at most n − 1 below the highest one.
        case .window(let width): self.underWayMax = min(underWayMax ?? 1, width)
        }
    }

    var sendsChallengeField: Bool { challenge == .field }

    /// The changes that the gateway can detect.
    func tamperings(hasContent: Bool) -> [Sending] {
        var found: [Sending] = [.tamperedSignature]
        if case .lines(let parts, _) = signing, parts.contains(.target) {
            found.append(.tamperedTarget)
        }
        if hasContent, signing.coversBody { found.append(.tamperedContent) }
        return found
    }
}

/// The kinds of requests that a mix has shares of.
package enum RequestKind: String, CaseIterable, Sendable {
    /// Signed as the rule asks.
    case good
    /// Without any proof.
    case missing
    /// A request that was admitted, byte for byte.
    case replayed
    /// Signed, then changed: the signature, the target or the content.
    case tampered
    /// Too old: a challenge of another start or past its time, or a counter below an admitted one.
    case stale
    /// Signed by a key that was never enrolled.
    case unknown
}

/// The proof of a request, as texts.
struct ProofTexts: Sendable {
    var keyID: [UInt8] = []
    var assertion: [UInt8] = []
    var challenge: [UInt8] = []
    /// Of Play Integrity; empty for none.
    var token: [UInt8] = []
}
