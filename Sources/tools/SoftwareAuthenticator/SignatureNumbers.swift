internal import Cryptography
internal import Encodings

/// The two numbers of an ECDSA signature on P-256, 32 bytes each, big-endian.
struct SignatureNumbers {
    private var r: [UInt8]
    private var s: [UInt8]

    /// The order of the curve (SEC 2 §2.4.2).
    private static let order: [UInt8] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63,
        0x25, 0x51,
    ]

    /// Reads a signature that OpenSSL has made.
    init(_ der: [UInt8]) {
        let bytes = der.span
        do throws(DERError) {
            var outer = DERCursor(0..<bytes.count)
            var numbers = DERCursor(try outer.next(.sequence, in: bytes))
            r = Self.padded(der[try numbers.next(.integer, in: bytes)])
            s = Self.padded(der[try numbers.next(.integer, in: bytes)])
        } catch {
            preconditionFailure("SignatureNumbers: OpenSSL's signature is no DER")
        }
    }

    /// `r ‖ s`, 64 bytes.
    var raw: [UInt8] { r + s }

    /// SEQUENCE { INTEGER r, INTEGER s }.
    var der: [UInt8] { DEREncoder.sequence([Self.integer(r), Self.integer(s)]) }

    /// The signature with `s` or with `order − s`: the one above half the order, or the other. Both
    /// are valid.
    func withS(aboveHalf isAbove: Bool) -> SignatureNumbers {
        let other = Self.difference(Self.order, s)
        // s is above half the order when it is greater than order − s.
        let isAboveNow = other.lexicographicallyPrecedes(s)
        guard isAboveNow != isAbove else { return self }
        var numbers = self
        numbers.s = other
        return numbers
    }

    /// `left − right` of 32 bytes each, where `right` is not the greater one.
    private static func difference(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        var result = left
        var borrow = 0
        for index in (0..<32).reversed() {
            let value = Int(left[index]) - Int(right[index]) - borrow
            borrow = value < 0 ? 1 : 0
            result[index] = UInt8(truncatingIfNeeded: value)
        }
        return result
    }

    private static func padded(_ integer: ArraySlice<UInt8>) -> [UInt8] {
        let digits = integer.drop { $0 == 0 }
        return [UInt8](repeating: 0, count: max(0, 32 - digits.count)) + digits
    }

    private static func integer(_ number: [UInt8]) -> [UInt8] {
        var digits = Array(number.drop { $0 == 0 })
        if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
        return DEREncoder.element(.integer, digits)
    }
}
