// DER (X.690): the part of it that certificate extensions, receipts and test certificates use.
//
// Read: definite, minimal lengths; tags of at most three digits. A broken rule is a `DERError` with
// the offset, never a trap. `DERCursor` walks the bytes without copying, `DEREncoder` writes.
// OpenSSL reads certificates, keys and CMS messages in Signatures. The app's half of the package
// writes a test certificate without it.

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

extension Span<UInt8> {
    /// A copy of the bytes of a range.
    package func copy(_ range: Range<Int>) -> [UInt8] {
        var copy: [UInt8] = []
        copy.reserveCapacity(range.count)
        for index in range { copy.append(self[index]) }
        return copy
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
}
