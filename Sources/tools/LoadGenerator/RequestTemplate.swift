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
            Self.describe(
                &made,
                demand: demand,
                method: method,
                target: target,
                isChunked: content.isChunked
            )
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
        demand: RequestDemand,
        method: String,
        target: String,
        isChunked: Bool
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

extension RequestTemplate {
    /// Writes a request, into memory that was used for another.
    ///
    /// - `proof`: `nil` for a request without.
    func write(_ proof: ProofTexts?, _ sending: Sending, content: Int, into message: inout Message)
    {
        let made = contents[content]
        begin(sending, into: &message)
        if let proof {
            field(demand.fields.keyID, proof.keyID, into: &message.head)
            field(demand.fields.assertion, proof.assertion, into: &message.head)
            if sending == .tamperedSignature {
                Self.changeSignature(proof.assertion, in: &message.head)
            }
            if demand.sendsChallengeField {
                field(demand.fields.challenge, proof.challenge, into: &message.head)
            }
            if !proof.token.isEmpty { field(demand.tokenField, proof.token, into: &message.head) }
        }
        end(made, content, sending, into: &message)
        guard let place = made.challengePlace, let proof else { return }
        let end = message.head.count
        message.head += message.isContentChanged ? made.changed : made.bytes
        if proof.challenge.count == place.count {
            message.head.replaceSubrange(
                end + place.lowerBound..<end + place.upperBound,
                with: proof.challenge
            )
        }
        message.content = nil
    }

    /// Writes the request line, the host and the user's fields.
    func begin(_ sending: Sending, into message: inout Message) {
        message.head.removeAll(keepingCapacity: true)
        message.head += sending == .tamperedTarget ? otherStart : start
    }

    /// Ends the head, and records the content that follows it.
    func end(_ made: Content, _ content: Int, _ sending: Sending, into message: inout Message) {
        message.head += made.fields
        message.isContentChanged = sending == .tamperedContent
        message.content = made.bytes.isEmpty ? nil : content
    }

    /// The bytes after the head.
    func body(of message: Message) -> [UInt8] {
        guard let content = message.content else { return [] }
        return message.isContentChanged ? contents[content].changed : contents[content].bytes
    }

    func field(_ name: [UInt8], _ value: [UInt8], into head: inout [UInt8]) {
        head += name
        head.append(UInt8(ascii: ":"))
        head.append(UInt8(ascii: " "))
        head += value
        head.append(0x0D)
        head.append(0x0A)
    }

    /// An assertion ends in 37 bytes of authenticator data and the name of the member, 19 bytes
    /// with its head. Before them is the signature, whose last 32 bytes are `s`. So the byte 80
    /// before the end is inside `s`, and a change of a whole character changes it.
    private static let charactersBehindChange = 80 * 4 / 3
    /// The text of an Android key ends in the signature, and so in `s`.
    private static let phoneCharactersBehindChange = 16

    private static func changeSignature(_ assertion: [UInt8], in head: inout [UInt8]) {
        let isPhone = assertion.starts(with: "v1.".utf8)
        // CR and LF follow the value.
        let place =
            head.count - 2 - (isPhone ? phoneCharactersBehindChange : charactersBehindChange)
        guard place > 0 else { return }
        head[place] = head[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
    }
}

/// The bytes of one request: its head, and the choice of its content.
struct Message: Sendable {
    /// The head; with content in it when that differs from request to request.
    var head: [UInt8] = []
    /// The template's content that follows; `nil` without content.
    var content: Int?
    /// The content is the changed copy.
    var isContentChanged = false
}

extension Message {
    /// A call of an endpoint with a document in JSON.
    ///
    /// - field: one more line of the head, with its end; empty for none.
    init(to target: String, at host: String, _ document: String, field: String = "") {
        let head = """
            POST \(target) HTTP/1.1\r
            Host: \(host)\r
            Content-Type: application/json\r
            Content-Length: \(document.utf8.count)\r
            \(field)\r
            \(document)
            """
        self.init(head: Array(head.utf8))
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
