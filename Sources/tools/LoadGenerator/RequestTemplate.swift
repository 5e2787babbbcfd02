import ByteCoding
import Cryptography
import HTTPWire
import JSONText
import RequestBinding
import Rules

/// The bytes of a request but for its proof, and what of them is signed.
struct RequestTemplate: Sendable {
    /// One size of content.
    struct Content: Sendable {
        /// As framed on the wire; empty for no content.
        var octets: [UInt8] = []
        /// The same with one byte changed.
        var changed: [UInt8] = []
        /// The content itself, inside its framing.
        var plain: Range<Int> = 0..<0
        /// Where the text of a challenge goes.
        var challengePlace: Range<Int>?
        /// The fields about it, and the blank line.
        var fields: [UInt8] = []
        /// The lines that are signed, up to and with the digest.
        var linesBefore: [UInt8] = []
        /// SHA-256 of the client data where no challenge is in them.
        var fixedHash: [UInt8]?
    }

    let demand: RequestDemand
    /// Request line, host and the fields that were asked for.
    let start: [UInt8]
    /// The same with another target.
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
        // The query takes no part in matching, so that the same rule judges it.
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
    private static func content(
        _ size: Int,
        _ demand: RequestDemand,
        isChunked: Bool
    ) -> Content {
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
        made.octets = framed
        made.changed = framed
        made.changed[made.plain.lowerBound + changedAt] ^= 1
        return made
    }

    private static func letters(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    }

    /// The fields about the content, and the lines that don't change from request to request.
    private static func describe(
        _ made: inout Content,
        _ demand: RequestDemand,
        method: String,
        target: String,
        _ isChunked: Bool
    ) {
        let digest = SHA256.digest(of: Array(made.octets[made.plain])).octets
        var fields = ""
        if !made.plain.isEmpty {
            fields =
                isChunked
                ? "Transfer-Encoding: chunked\r\n" : "Content-Length: \(made.plain.count)\r\n"
            if demand.declaresDigest {
                fields += "Content-Digest: sha-256=:\(Base64.text(digest)):\r\n"
            }
        } else if ["POST", "PUT", "PATCH"].contains(method) {
            // RFC 9110 §8.6: these say that there is none.
            fields = "Content-Length: 0\r\n"
        }
        made.fields = Array((fields + "\r\n").utf8)
        guard case .lines(let parts, _) = demand.signing else { return }
        var lines = RequestLines()
        let (method, target) = (Array(method.utf8), Array(target.utf8))
        lines.begin(parts, method: method.span)
        lines.target(target.span)
        lines.digest(digest.span)
        made.linesBefore = lines.octets
    }

    /// Writes the lines behind the digest.
    func finish(_ lines: inout RequestLines, challenge: Span<UInt8>?) {
        lines.challenge(challenge)
        for field in signedFields {
            lines.header(field.name.span)
            for value in field.values { lines.value(value.span) }
            lines.endHeader()
        }
    }
}
