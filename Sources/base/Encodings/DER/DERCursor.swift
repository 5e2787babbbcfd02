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
