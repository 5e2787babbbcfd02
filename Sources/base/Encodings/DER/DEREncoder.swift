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

    /// A non-negative INTEGER.
    package static func integer(_ value: UInt32) -> [UInt8] {
        var bytes = bigEndian(UInt64(value))
        if bytes[0] >= 0x80 { bytes.insert(0, at: 0) }
        return element(.integer, bytes)
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
