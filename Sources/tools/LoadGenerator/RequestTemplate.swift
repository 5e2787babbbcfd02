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
        /// The value of Content-Digest; `nil` where the head declares none.
        var digest: String?
        /// The signed lines, up to and including the digest.
        var linesBefore: [UInt8] = []
        /// SHA-256 of the client data, if they hold no challenge.
        var fixedHash: [UInt8]?
    }

    let demand: RequestDemand
    private(set) var contents: [Content] = []
    /// Request line, host and the user's fields.
    private let start: [UInt8]
    /// The start with another target.
    private let otherStart: [UInt8]
    /// The fields that the rule wants signed, in its order.
    private let signedFields: [(name: [UInt8], values: [[UInt8]])]

    /// Characters of a challenge.
    static let challengeCount = 56

    init(_ demand: RequestDemand, of request: LoadPlan.Request) {
        self.demand = demand
        let target = request.url.target
        let fields =
            [("Host", request.host)] + request.fields.filter { $0.name.lowercased() != "host" }
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        start = Array("\(request.method) \(target) HTTP/1.1\r\n\(lines)".utf8)
        // Matching ignores the query, so the rule also judges this target.
        let other = target + (target.contains("?") ? "&" : "?") + "changed=1"
        otherStart = Array("\(request.method) \(other) HTTP/1.1\r\n\(lines)".utf8)
        var names: [String] = []
        if case .lines(_, let signed) = demand.signing { names = signed }
        signedFields = names.map { name in
            let values = fields.filter { $0.0.lowercased() == name }.map { Array($0.1.utf8) }
            return (Array(name.utf8), values)
        }
        contents = request.content.sizes.map { size in
            var made = Self.content(of: size, demand, request.content)
            Self.describe(&made, demand, of: request)
            return made
        }
        for index in contents.indices where demand.challenge == nil {
            contents[index].fixedHash = hash(index, challenge: [])
        }
    }

    var hasContent: Bool { contents.contains { !$0.plain.isEmpty } }

    /// What is given, letters in a row, or a JSON text with a place for a challenge.
    private static func content(
        of size: Int,
        _ demand: RequestDemand,
        _ plan: ContentPlan
    ) -> Content {
        var made = Content()
        var plain: [UInt8] = []
        var changedAt = 0
        var challengeAt: Int?
        if let given = plan.given {
            plain = given
        } else if case .jsonPointer(let pointer) = demand.challenge {
            let filler = pointer.tokens.first == "filling" ? "filler" : "filling"
            let names = pointer.tokens.map { "{\(JSONValue.string($0).line):" }.joined()
            plain = Array((names + "\"").utf8)
            challengeAt = plain.count
            plain += [UInt8](repeating: UInt8(ascii: "A"), count: challengeCount)
            let ends = String(repeating: "}", count: pointer.tokens.count - 1)
            plain += "\"\(ends),\"\(filler)\":\"".utf8
            changedAt = plain.count
            plain += letters(max(size - plain.count - 2, 1)) + Array("\"}".utf8)
        } else {
            plain = letters(size)
        }
        guard !plain.isEmpty else { return made }
        if plan.isChunked { ChunkWriter.beginChunk(plain.count, into: &made.bytes) }
        let first = made.bytes.count
        made.plain = first..<first + plain.count
        made.challengePlace = challengeAt.map { first + $0..<first + $0 + challengeCount }
        made.bytes += plain
        if plan.isChunked {
            ChunkWriter.endChunk(into: &made.bytes)
            ChunkWriter.end(into: &made.bytes)
        }
        made.changed = made.bytes
        made.changed[first + changedAt] ^= 1
        return made
    }

    private static func letters(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    }

    /// The fields about the content, and the lines that all requests share.
    private static func describe(
        _ made: inout Content,
        _ demand: RequestDemand,
        of request: LoadPlan.Request
    ) {
        let digest = SHA256.digest(of: Array(made.bytes[made.plain])).array
        var fields = ""
        if !made.plain.isEmpty {
            let isChunked = request.content.isChunked
            let length = "Content-Length: \(made.plain.count)\r\n"
            fields = isChunked ? "Transfer-Encoding: chunked\r\n" : length
            if demand.declaresDigest { made.digest = "sha-256=:\(Base64.text(digest)):" }
            if let digest = made.digest { fields += "Content-Digest: \(digest)\r\n" }
        } else if ["POST", "PUT", "PATCH"].contains(request.method) {
            // RFC 9110 §8.6: requests with these methods announce that they have no content.
            fields = "Content-Length: 0\r\n"
        }
        made.fields = Array((fields + "\r\n").utf8)
        guard case .lines(let parts, _) = demand.signing else { return }
        var lines = RequestLines()
        lines.begin(parts, method: Array(request.method.utf8).span)
        lines.target(Array(request.url.target.utf8).span)
        lines.digest(digest.span)
        made.linesBefore = lines.bytes
    }
}

// What a device signs of a request.
extension RequestTemplate {
    /// SHA-256 of the client data of a request with one of the contents.
    ///
    /// - challenge: the text; empty where none is sent.
    func hash(_ content: Int, challenge: [UInt8]) -> [UInt8] {
        let made = contents[content]
        if let fixed = made.fixedHash { return fixed }
        switch demand.signing {
        case .lines(let parts, _):
            return SHA256.digest(of: lines(content, parts, last: challenge)).array
        case .content:
            let bytes = Self.insert(challenge, into: made.bytes, at: made.challengePlace)
            return SHA256.digest(bytes.span.extracting(made.plain)).array
        case .challenge: return SHA256.digest(of: challenge).array
        }
    }

    /// The signed lines.
    ///
    /// - last: the challenge, or the sequence number in a session; empty for none.
    func lines(_ content: Int, _ parts: SignedParts, last: [UInt8]) -> [UInt8] {
        var lines = RequestLines()
        lines.resume(behind: contents[content].linesBefore, parts, hasDigest: true)
        if last.isEmpty { lines.challenge(nil) } else { lines.challenge(last.span) }
        for field in signedFields {
            lines.header(field.name.span)
            for value in field.values { lines.value(value.span) }
            lines.endHeader()
        }
        return lines.bytes
    }

    /// Content with a challenge in its place, where it has one.
    private static func insert(
        _ challenge: [UInt8],
        into bytes: [UInt8],
        at place: Range<Int>?
    ) -> [UInt8] {
        guard let place, challenge.count == place.count else { return bytes }
        return bytes[..<place.lowerBound] + challenge + bytes[place.upperBound...]
    }
}

/// The bytes of one request.
struct Message: Sendable {
    var head: [UInt8] = []
    var body: [UInt8] = []
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

            """
        self.init(head: Array(head.utf8), body: Array(document.utf8))
    }
}

extension RequestTemplate {
    private static let sessionName = Array("App-Attest-Session".utf8)
    private static let sequenceName = Array("App-Attest-Sequence".utf8)
    private static let signatureName = Array("App-Attest-Signature".utf8)
    /// Bytes for the fields of a proof and those about the content.
    private static let proofBytes = 640

    /// Writes a request.
    ///
    /// - `proof`: `nil` for a request without.
    func message(_ proof: ProofTexts?, _ sending: Sending, content: Int = 0) -> Message {
        let made = contents[content]
        var message = Message(body: sending == .tamperedContent ? made.changed : made.bytes)
        message.head.reserveCapacity(otherStart.count + Self.proofBytes)
        message.head += sending == .tamperedTarget ? otherStart : start
        if let proof {
            for (name, value) in fields(of: proof, isTampered: sending == .tamperedSignature) {
                message.head += name
                message.head += [UInt8(ascii: ":"), UInt8(ascii: " ")]
                message.head += value
                message.head += [0x0D, 0x0A]
            }
            let place = made.challengePlace
            message.body = Self.insert(proof.challenge, into: message.body, at: place)
        }
        message.head += made.fields
        return message
    }

    /// The fields of a proof, by the names that the rule gives them.
    func fields(
        of proof: ProofTexts,
        isTampered: Bool = false
    ) -> [(name: [UInt8], value: [UInt8])] {
        let signature = isTampered ? proof.changedSignature : proof.assertion
        let keyID = (name: demand.fields.keyID, value: proof.keyID)
        if let session = proof.session {
            // A rule with other field names takes no key id besides a session. Load balancers use
            // it.
            return (keyID.name == FieldNames.standard.keyID ? [keyID] : []) + [
                (Self.sessionName, session.id), (Self.sequenceName, session.sequence),
                (Self.signatureName, signature),
            ]
        }
        var fields = [keyID, (demand.fields.assertion, signature)]
        if demand.challenge == .field { fields.append((demand.fields.challenge, proof.challenge)) }
        if !proof.token.isEmpty { fields.append((demand.tokenField, proof.token)) }
        return fields
    }
}

/// The proof of a request, as texts.
struct ProofTexts: Sendable {
    var keyID: [UInt8] = []
    /// In a session, its signature.
    var assertion: [UInt8] = []
    var challenge: [UInt8] = []
    /// Of Play Integrity; empty for none.
    var token: [UInt8] = []
    var session: (id: [UInt8], sequence: [UInt8])?

    /// The assertion with a changed character inside its signature.
    var changedSignature: [UInt8] {
        // An assertion ends in 37 bytes of authenticator data and the name of the member, 19 bytes
        // with its head. Before them is the signature, whose last 32 bytes are `s`. So the byte 80
        // before the end is inside `s`, and a change of a whole character changes it. The text of
        // an Android key ends in the signature. Of a session's, any character but the last two
        // changes it, which hold bits that must be zero.
        let isApple = session == nil && !assertion.starts(with: "v1.".utf8)
        let place = assertion.count - (isApple ? 80 * 4 / 3 : 8)
        guard place > 0 else { return assertion }
        var changed = assertion
        changed[place] = changed[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        return changed
    }
}
