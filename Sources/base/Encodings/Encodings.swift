// How bytes are written and read, on arrays and spans, without Foundation.
//
//   Base64, Hex, ProtobufReader  text forms of bytes (RFC 4648), fields of Protocol Buffers;
//                                and CivilDate, the calendar that texts of times need
//   JSON                         the one reader and the one writer of JSON (RFC 8259)
//   CBOR                         the strict part of CBOR (RFC 8949) that App Attest uses
//   DER                          the part of DER (X.690) that certificates and receipts use, and
//                                what test authorities write with it
//
// Everything here is pure and total, and this target imports nothing: an app links it. Malformed
// input is `nil` or an error with a place, never a trap. The gateway reads key ids, assertions,
// challenges and digests from header fields, so these functions see what strangers send.

/// Hexadecimal text, lower case, two digits a byte.
public enum Hex {
    private static let digits = Array("0123456789abcdef".utf8)

    /// The digits of all bytes in order.
    public static func text(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.underestimatedCount * 2)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of a text of an even number of digits in either case; `nil` otherwise.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(digits[index]), let low = value(digits[index + 1]) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
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

    /// Whether two ranges hold the same bytes.
    package func equals(_ left: Range<Int>, _ right: Range<Int>) -> Bool {
        guard left.count == right.count else { return false }
        for step in 0..<left.count
        where self[left.lowerBound + step] != self[right.lowerBound + step] {
            return false
        }
        return true
    }

    /// The eight bytes from a place on as a number, the most significant byte first.
    package func word(at place: Int) -> UInt64 {
        var word: UInt64 = 0
        for index in place..<(place + 8) { word = word << 8 | UInt64(self[index]) }
        return word
    }
}

extension String {
    /// The text of bytes in UTF-8; `nil` when they are not UTF-8. Apple's systems have
    /// `String(validating:as:)` since 2024 only.
    package init?(utf8 bytes: [UInt8]) {
        self.init(decoding: bytes, as: UTF8.self)
        // Bytes that are not UTF-8 were replaced by other bytes.
        guard utf8.elementsEqual(bytes) else { return nil }
    }
}

/// A day of the Gregorian calendar, also for years before its introduction (proleptic).
///
/// Calculations count years from March on, so the leap day is the last day of a year.
package struct CivilDate: Equatable, Sendable {
    package let year: Int64
    /// 1…12.
    package let month: Int64
    /// 1…31.
    package let day: Int64

    /// The caller has checked that the calendar has the day, or does before it counts days.
    package init(year: Int64, month: Int64, day: Int64) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// The day this number of days after 1970-01-01: from -719,468, which is 1 March of the year 0,
    /// to 10¹⁴.
    package init(daysSinceEpoch days: Int64) {
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// The days from 1970-01-01 to this one, for years from 1 on.
    package var daysSinceEpoch: Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let era = marchYear / 400
        let yearOfEra = marchYear % 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}

extension Int64 {
    /// The decimal digits, with zeros before them up to a number of digits.
    package func padded(to digits: Int) -> String {
        let text = String(self)
        return String(repeating: "0", count: Swift.max(0, digits - text.count)) + text
    }
}

extension Duration {
    /// Whole nanoseconds: 0 for a negative duration, and at most 2⁶², which are 146 years.
    package var nanosecondCount: UInt64 {
        let most = Duration.nanoseconds(Int64(1) << 62)
        let (seconds, attoseconds) = min(max(self, .zero), most).components
        return UInt64(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}

extension UInt8 {
    /// Whether it is a letter or a digit of US-ASCII.
    package var isAlphanumeric: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}

extension Decoder {
    /// What a single text stands for.
    ///
    /// - fault: what is wrong with a text that stands for nothing.
    package func value<Value>(
        otherwise fault: String,
        _ read: (String) -> Value?
    ) throws -> Value {
        let container = try singleValueContainer()
        guard let value = read(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: fault)
        }
        return value
    }
}

extension Encoder {
    /// Writes a single text.
    package func encode(text: String) throws {
        var container = singleValueContainer()
        try container.encode(text)
    }
}
