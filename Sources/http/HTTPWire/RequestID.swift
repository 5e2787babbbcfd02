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
        write(high, at: 0)
        write(low, at: 16)
    }

    /// A name with the same first 16 digits.
    fileprivate func ending(in low: UInt64) -> RequestID {
        var name = self
        name.write(low, at: 16)
        return name
    }

    private mutating func write(_ value: UInt64, at start: Int) {
        for place in 0..<16 {
            bytes[start + place] = Self.digit(value &>> UInt64(60 - 4 * place))
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
    /// The hash after the key, from which every name's hash goes on.
    private let keyed: Hasher
    /// A name with the first half of all names: one hash for each request is enough to tell them
    /// apart.
    private let first: RequestID
    private var number: UInt64 = 0

    /// - key: random words.
    package init(key: (UInt64, UInt64)) {
        var keyed = Hasher()
        keyed.combine(key.0)
        keyed.combine(key.1)
        self.keyed = keyed
        first = RequestID(Self.word(keyed, 0), 0)
    }

    package mutating func next() -> RequestID {
        number &+= 1
        return first.ending(in: Self.word(keyed, number))
    }

    /// The number of a span, which is not zero (W3C Trace Context §3.2.2.4).
    package mutating func nextSpan() -> UInt64 {
        number &+= 1
        return max(Self.word(keyed, number), 1)
    }

    private static func word(_ keyed: Hasher, _ number: UInt64) -> UInt64 {
        var hasher = keyed
        hasher.combine(number)
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }
}

// A proxy's own name for a request. The gateway believes trusted proxies alone: any other client
// could choose lines of the log and join the traces of others.
extension FieldSection {
    /// The name in X-Request-Id; `nil` where there is none, more than one line, or one that
    /// ``RequestID`` does not take.
    package func requestID(_ bytes: Span<UInt8>) -> RequestID? {
        guard let field = passed(.requestID) else { return nil }
        return RequestID(bytes, field.value)
    }

    /// The only field of a kind, unless Connection makes it end here.
    func passed(_ kind: FieldKind) -> Field? {
        guard let field = only(kind), !field.isNominated else { return nil }
        return field
    }
}

extension HeadWriter {
    /// Appends X-Request-Id.
    package static func requestID(_ id: RequestID, into out: inout [UInt8]) {
        // The pointer lives for the call only, and the copy is made inside it.
        id.bytes.span.extracting(0..<id.count).withUnsafeBufferPointer {
            out.append(line: "X-Request-Id", $0)
        }
    }
}
