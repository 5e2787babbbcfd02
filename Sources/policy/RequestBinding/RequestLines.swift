import ByteCoding

/// Writes the line form of the client data, line by line, in the order of the module's table.
///
/// The caller writes all four parts, `nil` for one that the rule leaves out, and then the header
/// lines. The buffer is the caller's, so that a gateway can use one for all requests of a lane.
public struct RequestLines: Sendable {
    /// The client data so far.
    public private(set) var octets: [UInt8] = []

    private static let version = Array("portcullis-request-v1\n".utf8)
    private static let digestStart = Array("sha-256=:".utf8)
    private static let lineFeed = UInt8(ascii: "\n")
    private static let absent = UInt8(ascii: "-")

    /// An empty description; call ``begin()`` first.
    public init() {}

    /// Forgets the last request, keeps its memory, and writes the version line.
    public mutating func begin() {
        octets.removeAll(keepingCapacity: true)
        octets.append(contentsOf: Self.version)
    }

    /// Forgets the last request and goes on behind lines that were written before.
    public mutating func begin(continuing lines: [UInt8]) {
        octets.removeAll(keepingCapacity: true)
        octets.append(contentsOf: lines)
    }

    /// Writes the origin-form of an absolute target without a path: a slash, then its query.
    public mutating func target(behindSlash query: Span<UInt8>) {
        octets.append(UInt8(ascii: "/"))
        append(query)
        octets.append(Self.lineFeed)
    }

    /// Whether a part's text reads as a part that is not signed. It must not be signed.
    public static func readsAsAbsent(_ text: Span<UInt8>) -> Bool {
        text.count == 1 && text[0] == absent
    }

    /// Writes one part, or "-" for a part that is not signed.
    public mutating func part(_ text: Span<UInt8>?) {
        if let text { append(text) } else { octets.append(Self.absent) }
        octets.append(Self.lineFeed)
    }

    /// Writes the digest line: the `Content-Digest` member for sha-256 (RFC 9530 §2), in its one
    /// canonical spelling.
    ///
    /// - Parameter digest: SHA-256 of the content, 32 octets.
    public mutating func digest(_ digest: Span<UInt8>) {
        octets.append(contentsOf: Self.digestStart)
        Base64.append(digest, to: &octets)
        octets.append(UInt8(ascii: ":"))
        octets.append(Self.lineFeed)
    }

    /// Begins the line of a signed header; then ``value(_:)`` for each of its lines, then
    /// ``endHeader()``.
    public mutating func header(_ name: Span<UInt8>) {
        append(name)
        hasValue = false
    }

    /// Adds one field line's value to the header that was begun.
    public mutating func value(_ value: Span<UInt8>) {
        octets.append(UInt8(ascii: hasValue ? "," : ":"))
        octets.append(UInt8(ascii: " "))
        hasValue = true
        append(value)
    }

    /// Ends the line of a signed header.
    public mutating func endHeader() {
        octets.append(Self.lineFeed)
    }

    private var hasValue = false

    private mutating func append(_ text: Span<UInt8>) {
        // The pointer lives for the call only, and the copy is made inside it.
        text.withUnsafeBufferPointer { octets.append(contentsOf: $0) }
    }
}

extension RequestLines {
    /// The client data of a whole request, for clients and tests.
    ///
    /// - Parameters:
    ///   - parts: what is signed; the others are written as "-".
    ///   - method: as in the request line.
    ///   - target: as in the request line, in origin-form.
    ///   - digest: SHA-256 of the content, 32 octets.
    ///   - challenge: the text of the challenge field.
    ///   - headers: the signed fields in the rule's order; `nil` for one that the request lacks.
    /// - Returns: the lines; SHA-256 of them is what an assertion is made for.
    public static func clientData(
        _ parts: SignedParts,
        method: String,
        target: String,
        digest: [UInt8],
        challenge: String,
        headers: [(name: String, value: String?)] = []
    ) -> [UInt8] {
        var lines = RequestLines()
        lines.begin()
        lines.text(parts.contains(.method) ? method : nil)
        lines.text(parts.contains(.target) ? target : nil)
        if parts.contains(.body) { lines.digest(digest.span) } else { lines.part(nil) }
        lines.text(parts.contains(.challenge) ? challenge : nil)
        for (name, value) in headers {
            let name = Array(name.utf8)
            lines.header(name.span)
            if let value = value.map({ Array($0.utf8) }) { lines.value(value.span) }
            lines.endHeader()
        }
        return lines.octets
    }

    private mutating func text(_ text: String?) {
        guard let text = text.map({ Array($0.utf8) }) else { return part(nil) }
        part(text.span)
    }
}
