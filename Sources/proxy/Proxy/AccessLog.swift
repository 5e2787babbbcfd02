/// Writes one JSON object a line for each request, into memory; the owner takes what has gathered.
///
/// Nothing secret is written: of a key only its short hash, of a target no query.
struct AccessLog {
    /// Octets that gather before lines are dropped: a log that can't keep up must not stop the
    /// gateway.
    static let pendingMax = 1 << 20

    private(set) var pending: [UInt8] = []
    /// Lines that were dropped since ``take()``.
    private(set) var dropped: UInt64 = 0

    /// Begins a line. The other members follow, then ``end()``.
    mutating func begin() {
        pending.append(UInt8(ascii: "{"))
        isFirst = true
    }

    /// Ends a line; forgets it when too much is pending already.
    mutating func end() {
        pending.append(UInt8(ascii: "}"))
        pending.append(UInt8(ascii: "\n"))
        if pending.count > Self.pendingMax {
            dropped &+= 1
            pending.removeLast(pending.count - lineStart)
        }
        lineStart = pending.count
    }

    /// Hands over what has gathered, and how many lines were dropped.
    mutating func take() -> (lines: [UInt8], dropped: UInt64) {
        defer {
            pending = []
            dropped = 0
            lineStart = 0
        }
        return (pending, dropped)
    }

    private var isFirst = true
    private var lineStart = 0

    mutating func member(_ name: StaticString, _ value: String) {
        key(name)
        pending.append(UInt8(ascii: "\""))
        for octet in value.utf8 { escape(octet) }
        pending.append(UInt8(ascii: "\""))
    }

    mutating func member(_ name: StaticString, octets: some Sequence<UInt8>) {
        key(name)
        pending.append(UInt8(ascii: "\""))
        for octet in octets { escape(octet) }
        pending.append(UInt8(ascii: "\""))
    }

    mutating func member(_ name: StaticString, _ value: some BinaryInteger) {
        key(name)
        pending.append(contentsOf: String(value).utf8)
    }

    mutating func member(_ name: StaticString, _ value: Bool) {
        key(name)
        pending.append(contentsOf: (value ? "true" : "false").utf8)
    }

    private mutating func key(_ name: StaticString) {
        if !isFirst { pending.append(UInt8(ascii: ",")) }
        isFirst = false
        pending.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { pending.append(contentsOf: $0) }
        pending.append(UInt8(ascii: "\""))
        pending.append(UInt8(ascii: ":"))
    }

    /// JSON's escapes; octets beyond ASCII are written as if they were Latin-1, so that a line is
    /// valid UTF-8 whatever a client sent.
    private mutating func escape(_ octet: UInt8) {
        switch octet {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            pending.append(UInt8(ascii: "\\"))
            pending.append(octet)
        case 0x20..<0x7F: pending.append(octet)
        default:
            pending.append(contentsOf: "\\u00".utf8)
            for digit in [octet >> 4, octet & 15] {
                pending.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
            }
        }
    }
}
