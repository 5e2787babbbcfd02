// DER (X.690): the part of it that certificate extensions, receipts and test certificates use.
//
// Read: definite, minimal lengths; tags of at most three digits. A broken rule is a `DERError` with
// the offset, never a trap. `DERCursor` walks the bytes without copying, `DEREncoder` writes.
// Signatures reads certificates and CMS messages with it. The app's half of the package writes test
// certificates with it.

/// Walks the elements of one DER content, front to back (X.690 §8.1 and §10.1: definite, minimal
/// lengths).
///
/// The cursor holds offsets only. The bytes are given with each call, so nothing is copied. The
/// caller enters a constructed element with a new cursor over the element's content.
package struct DERCursor {
    /// The tag and the content of one element.
    package struct Element {
        package let tag: DERTag
        package let content: Range<Int>
    }

    package private(set) var offset: Int
    private let end: Int

    /// A cursor over a part of the bytes.
    package init(_ range: Range<Int>) {
        offset = range.lowerBound
        end = range.upperBound
    }

    /// Whether no element is left.
    package var isAtEnd: Bool { offset == end }

    /// Reads the next element, of any kind.
    package mutating func next(in bytes: Span<UInt8>) throws(DERError) -> Element {
        let start = offset
        guard end <= bytes.count else { throw DERError(.truncated, at: start) }
        let tag = try tag(in: bytes)
        let length = try length(in: bytes)
        guard length <= end - offset else { throw DERError(.truncated, at: start) }
        let content = offset..<(offset + length)
        offset = content.upperBound
        return Element(tag: tag, content: content)
    }

    /// Reads the next element, which must have this tag, and returns its content.
    package mutating func next(
        _ tag: DERTag,
        in bytes: Span<UInt8>
    ) throws(DERError) -> Range<Int> {
        let start = offset
        let element = try next(in: bytes)
        guard element.tag == tag else { throw DERError(.unexpectedTag, at: start) }
        return element.content
    }

    /// Reads the next element, a non-negative INTEGER below 2³¹.
    package mutating func smallInteger(in bytes: Span<UInt8>) throws(DERError) -> Int {
        let start = offset
        let content = try next(.integer, in: bytes)
        guard (1...4).contains(content.count), bytes[content.lowerBound] < 0x80 else {
            throw DERError(.badInteger, at: start)
        }
        // X.690 §8.3.2: the first nine bits are not all alike.
        if content.count > 1, bytes[content.lowerBound] == 0,
            bytes[content.lowerBound + 1] < 0x80
        {
            throw DERError(.badInteger, at: start)
        }
        var value = 0
        for index in content { value = value << 8 | Int(bytes[index]) }
        return value
    }

    /// Reads the next element, an INTEGER or ENUMERATED of at most 64 bits.
    package mutating func integer(_ tag: DERTag, in bytes: Span<UInt8>) throws(DERError) -> Int64 {
        let start = offset
        let content = try next(tag, in: bytes)
        guard (1...8).contains(content.count) else { throw DERError(.badInteger, at: start) }
        var value = Int64(Int8(bitPattern: bytes[content.lowerBound]))
        for index in content.dropFirst() {
            // X.690 §8.3.2: the first nine bits are not all alike.
            let isFirst = index == content.lowerBound + 1
            if isFirst, value == (bytes[index] < 0x80 ? 0 : -1) {
                throw DERError(.badInteger, at: start)
            }
            value = value << 8 | Int64(bytes[index])
        }
        return value
    }

    /// Refuses what is left.
    package func finish() throws(DERError) {
        guard isAtEnd else { throw DERError(.trailingBytes, at: offset) }
    }

    private mutating func byte(in bytes: Span<UInt8>) throws(DERError) -> UInt8 {
        guard offset < end else { throw DERError(.truncated, at: offset) }
        defer { offset += 1 }
        return bytes[offset]
    }

    private mutating func tag(in bytes: Span<UInt8>) throws(DERError) -> DERTag {
        let start = offset
        let first = try byte(in: bytes)
        guard first & 0x1F == 0x1F else {
            return DERTag(bits: first & 0xE0, number: UInt32(first & 0x1F))
        }
        // X.690 §8.1.2.4: base 128, high digit first. Apple's tags go to 1404, two digits; three
        // are read.
        var number: UInt32 = 0
        for digit in 0..<3 {
            let next = try byte(in: bytes)
            guard digit > 0 || next != 0x80 else { throw DERError(.tagTooLarge, at: start) }
            number = number << 7 | UInt32(next & 0x7F)
            if next & 0x80 == 0 {
                guard number > 30 else { throw DERError(.tagTooLarge, at: start) }
                return DERTag(bits: first & 0xE0, number: number)
            }
        }
        throw DERError(.tagTooLarge, at: start)
    }

    private mutating func length(in bytes: Span<UInt8>) throws(DERError) -> Int {
        let start = offset
        let first = try byte(in: bytes)
        guard first >= 0x80 else { return Int(first) }
        guard first != 0x80 else { throw DERError(.lengthNotDefinite, at: start) }
        let count = Int(first & 0x7F)
        guard count <= 4 else { throw DERError(.lengthTooLarge, at: start) }
        var length = 0
        for _ in 0..<count { length = length << 8 | Int(try byte(in: bytes)) }
        guard length >= 0x80, length >> ((count - 1) * 8) > 0 else {
            throw DERError(.lengthNotMinimal, at: start)
        }
        return length
    }
}

/// Writes DER elements: certificate extensions and receipts of a test authority.
package enum DEREncoder {
    /// One element with this tag around this content.
    package static func element(_ tag: DERTag, _ content: [UInt8]) -> [UInt8] {
        identifier(tag) + length(content.count) + content
    }

    /// A SEQUENCE of elements that are encoded already.
    package static func sequence(_ elements: [[UInt8]]) -> [UInt8] {
        element(.sequence, Array(elements.joined()))
    }

    /// A SET of elements that are encoded already, in the order given (Apple's receipts do not sort
    /// theirs).
    package static func set(_ elements: [[UInt8]]) -> [UInt8] {
        element(.set, Array(elements.joined()))
    }

    package static func octetString(_ bytes: [UInt8]) -> [UInt8] { element(.octetString, bytes) }

    /// An INTEGER of a number that is not negative.
    package static func integer(_ value: some BinaryInteger) -> [UInt8] {
        var bytes = bigEndian(UInt64(value))
        if bytes[0] >= 0x80 { bytes.insert(0, at: 0) }
        return element(.integer, bytes)
    }

    /// A constructed element of indefinite length, as BER has it (X.690 §8.1.3.6).
    package static func indefinite(_ tag: DERTag, _ elements: [[UInt8]]) -> [UInt8] {
        identifier(tag) + [0x80] + elements.joined() + [0, 0]
    }

    /// A time, in seconds since 1970: UTCTime from 1950 to 2049, GeneralizedTime outside of them
    /// (RFC 5280 §4.1.2.5).
    package static func time(_ seconds: Int64) -> [UInt8] {
        let second = (seconds % 86_400 + 86_400) % 86_400
        let date = CivilDate(daysSinceEpoch: (seconds - second) / 86_400)
        let isShort = (1950...2049).contains(date.year)
        let year = isShort ? (date.year % 100).padded(to: 2) : date.year.padded(to: 4)
        let rest = [date.month, date.day, second / 3_600, second / 60 % 60, second % 60]
            .map { $0.padded(to: 2) }
        let text = year + rest.joined() + "Z"
        return element(isShort ? .utcTime : .generalizedTime, Array(text.utf8))
    }

    /// A BIT STRING of whole bytes.
    package static func bitString(_ bytes: [UInt8]) -> [UInt8] { element(.bitString, [0] + bytes) }

    /// An OBJECT IDENTIFIER of two arcs and more (X.690 §8.19).
    package static func objectIdentifier(_ arcs: [UInt32]) -> [UInt8] {
        precondition(
            arcs.count >= 2 && arcs[0] <= 2 && arcs[1] < 40,
            "DEREncoder: not an object identifier"
        )
        return element(
            .objectIdentifier,
            digits(arcs[0] * 40 + arcs[1]) + arcs[2...].flatMap(digits)
        )
    }

    /// A number in base 128, high digit first, all but the last digit marked.
    private static func digits(_ number: UInt32) -> [UInt8] {
        var digits: [UInt8] = []
        var rest = number
        repeat {
            digits.insert(UInt8(rest & 0x7F) | (digits.isEmpty ? 0 : 0x80), at: 0)
            rest >>= 7
        } while rest > 0
        return digits
    }

    private static func identifier(_ tag: DERTag) -> [UInt8] {
        guard tag.number > 30 else { return [tag.bits | UInt8(tag.number)] }
        return [tag.bits | 0x1F] + digits(tag.number)
    }

    private static func length(_ count: Int) -> [UInt8] {
        guard count >= 0x80 else { return [UInt8(count)] }
        let digits = bigEndian(UInt64(count))
        return [0x80 | UInt8(digits.count)] + digits
    }

    /// A number in as few bytes as hold it; 0 in one.
    private static func bigEndian(_ value: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = value
        repeat {
            bytes.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        } while rest > 0
        return bytes
    }
}

/// A tag of ASN.1: class, form and number.
package struct DERTag: Hashable, Sendable {
    /// The class and form bits of the identifier byte: 0xE0 of it.
    package let bits: UInt8
    package let number: UInt32

    /// A tag of these class and form bits.
    package init(bits: UInt8, number: UInt32) {
        self.bits = bits
        self.number = number
    }

    package static let boolean = DERTag(bits: 0x00, number: 1)
    package static let integer = DERTag(bits: 0x00, number: 2)
    package static let bitString = DERTag(bits: 0x00, number: 3)
    package static let octetString = DERTag(bits: 0x00, number: 4)
    package static let objectIdentifier = DERTag(bits: 0x00, number: 6)
    package static let enumerated = DERTag(bits: 0x00, number: 10)
    package static let utf8String = DERTag(bits: 0x00, number: 12)
    package static let utcTime = DERTag(bits: 0x00, number: 23)
    package static let generalizedTime = DERTag(bits: 0x00, number: 24)
    package static let sequence = DERTag(bits: 0x20, number: 16)
    package static let set = DERTag(bits: 0x20, number: 17)

    /// A context-specific tag around another element: `[number] EXPLICIT`.
    package static func explicit(_ number: UInt32) -> DERTag { DERTag(bits: 0xA0, number: number) }

    /// A context-specific tag in the place of a primitive element's own: `[number] IMPLICIT`.
    package static func implicit(_ number: UInt32) -> DERTag { DERTag(bits: 0x80, number: number) }
}

/// Where and why bytes are not DER.
package struct DERError: Error, Equatable {
    /// What was wrong.
    package enum Reason: String, Sendable {
        case truncated, unexpectedTag, tagTooLarge, lengthNotDefinite, lengthNotMinimal
        case lengthTooLarge, trailingBytes, badInteger, duplicate, tooMany
    }

    package let reason: Reason
    /// The offset of the element, in the bytes that the cursor walks.
    package let offset: Int

    package init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}
