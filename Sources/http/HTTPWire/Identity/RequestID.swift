/// The name of one request, or of the trace that it belongs to: for the log, the origin and the
/// client's problem document.
///
/// Token characters, which need no escape in a field, a line of the log or JSON. They are kept in
/// place: a name allocates nothing.
package struct RequestID: Sendable {
    /// The most bytes of a proxy's name for a request. The gateway replaces a longer one by its
    /// own.
    package static let countMax = 64

    package private(set) var bytes = InlineArray<64, UInt8>(repeating: 0)
    /// How many of the bytes count.
    package private(set) var count: Int

    /// 32 hexadecimal digits.
    package init(_ high: UInt64, _ low: UInt64) {
        count = 32
        for place in 0..<16 {
            let shift = UInt64(60 - 4 * place)
            bytes[place] = Self.digit(high &>> shift)
            bytes[16 + place] = Self.digit(low &>> shift)
        }
    }

    /// A part of a head; `nil` for one that is empty, too long, or has other bytes than token
    /// characters (RFC 9110 §5.6.2).
    package init?(_ source: Span<UInt8>, _ range: Range<Int>) {
        guard !range.isEmpty, range.count <= Self.countMax else { return nil }
        count = range.count
        for place in 0..<range.count {
            let byte = source[range.lowerBound + place]
            guard ByteSet.token.contains(byte) else { return nil }
            bytes[place] = byte
        }
    }

    /// The last 16 of its bytes: for a name of our own, the number of a span.
    var tail: Range<Int> { max(count - 16, 0)..<count }

    package var text: String { String(decoding: (0..<count).map { bytes[$0] }, as: UTF8.self) }

    package func append(to out: inout [UInt8]) { out.append(bytes.span, 0..<count) }

    /// Whether the name has these bytes.
    package func equals(_ text: [UInt8]) -> Bool {
        text.count == count && (0..<count).allSatisfy { bytes[$0] == text[$0] }
    }

    private static func digit(_ value: UInt64) -> UInt8 {
        let nibble = UInt8(truncatingIfNeeded: value & 0xF)
        return nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") - 10 + nibble
    }
}

/// Makes names that no outsider can predict: 64 bits that stay, and the standard library's
/// SipHash of a number, under a key. Each event loop has a source of its own.
package struct RequestIDSource: Sendable {
    private let key: (UInt64, UInt64)
    /// The first half of all names: one hash for each request is enough to tell them apart.
    private let start: UInt64
    private var number: UInt64 = 0

    /// - key: random words.
    package init(key: (UInt64, UInt64)) {
        self.key = key
        start = Self.word(key, 0)
    }

    package mutating func next() -> RequestID {
        number &+= 1
        return RequestID(start, Self.word(key, number))
    }

    private static func word(_ key: (UInt64, UInt64), _ number: UInt64) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(key.0)
        hasher.combine(key.1)
        hasher.combine(number)
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }
}
