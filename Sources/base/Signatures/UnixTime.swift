internal import Encodings

/// A moment, as seconds and nanoseconds since 1970-01-01T00:00:00Z, without leap seconds.
public struct UnixTime: Hashable, Comparable, Sendable {
    /// Whole seconds since the epoch; negative before it.
    public let seconds: Int64
    /// The part beyond the whole second: 0…999,999,999.
    public let nanoseconds: UInt32

    /// The moment `seconds` after the epoch, and `nanoseconds` more. A second or more of
    /// nanoseconds is a bug of the caller.
    public init(seconds: Int64, nanoseconds: UInt32 = 0) {
        precondition(nanoseconds < 1_000_000_000, "UnixTime: nanoseconds of a second")
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// The moment a date and a time of day in UTC name (proleptic Gregorian); `nil` when there is
    /// no such day or time. Years are 1…9999; a leap second is not a time here.
    private init?(
        _ date: CivilDate,
        hour: Int,
        minute: Int,
        second: Int,
        nanoseconds: UInt32 = 0
    ) {
        guard (1...9999).contains(date.year), (1...12).contains(date.month),
            (1...Self.days(inMonth: date.month, of: date.year)).contains(date.day),
            (0...23).contains(hour), (0...59).contains(minute), (0...59).contains(second)
        else { return nil }
        let secondOfDay = Int64(hour * 3_600 + minute * 60 + second)
        self.init(
            seconds: date.daysSinceEpoch * 86_400 + secondOfDay,
            nanoseconds: nanoseconds
        )
    }

    /// Whether the left moment is before the right one.
    public static func < (left: Self, right: Self) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }

    /// The moment `count` seconds later, or earlier for a negative count; limited to the range.
    public func advanced(bySeconds count: Int64) -> UnixTime {
        let (sum, overflow) = seconds.addingReportingOverflow(count)
        guard !overflow else {
            return UnixTime(seconds: count < 0 ? .min : .max, nanoseconds: nanoseconds)
        }
        return UnixTime(seconds: sum, nanoseconds: nanoseconds)
    }

    private static func days(inMonth month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }
}

extension UnixTime {
    /// Reads `YYYY-MM-DDThh:mm:ss[.fraction]Z`, the form of RFC 3339 in UTC, with 1…9 digits of a
    /// fraction.
    ///
    /// Nothing else is read: no lower case, no other offset, no white space, no leap second.
    /// Apple's receipts write two or three digits of a fraction.
    public init?(iso8601 text: Span<UInt8>) {
        guard text.count >= 20, text.count <= 30, text[4] == UInt8(ascii: "-"),
            text[7] == UInt8(ascii: "-"), text[10] == UInt8(ascii: "T"),
            text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"),
            text[text.count - 1] == UInt8(ascii: "Z"),
            let year = Self.number(text, 0..<4), let month = Self.number(text, 5..<7),
            let day = Self.number(text, 8..<10), let hour = Self.number(text, 11..<13),
            let minute = Self.number(text, 14..<16), let second = Self.number(text, 17..<19)
        else { return nil }
        var nanoseconds = 0
        if text.count > 20 {
            guard text.count > 21, text[19] == UInt8(ascii: "."),
                let fraction = Self.number(text, 20..<(text.count - 1))
            else { return nil }
            nanoseconds = fraction
            for _ in (text.count - 21)..<9 { nanoseconds *= 10 }
        }
        self.init(
            CivilDate(year: Int64(year), month: Int64(month), day: Int64(day)),
            hour: hour,
            minute: minute,
            second: second,
            nanoseconds: UInt32(nanoseconds)
        )
    }

    /// Reads `YYYY-MM-DDThh:mm:ss[.fraction]Z`. See ``init(iso8601:)-(Span<UInt8>)``.
    public init?(iso8601 text: String) {
        let bytes = Array(text.utf8)
        self.init(iso8601: ContiguousArray(bytes).span)
    }

    /// Reads the time of a certificate: `YYMMDDhhmmssZ` when `isTwoDigitYear`, else
    /// `YYYYMMDDhhmmssZ` (RFC 5280 §4.1.2.5.1 and §4.1.2.5.2).
    init?(certificateTime text: Span<UInt8>, isTwoDigitYear: Bool) {
        let digits = isTwoDigitYear ? 2 : 4
        guard text.count == digits + 11, text[text.count - 1] == UInt8(ascii: "Z"),
            let yearText = Self.number(text, 0..<digits),
            let month = Self.number(text, digits..<(digits + 2)),
            let day = Self.number(text, (digits + 2)..<(digits + 4)),
            let hour = Self.number(text, (digits + 4)..<(digits + 6)),
            let minute = Self.number(text, (digits + 6)..<(digits + 8)),
            let second = Self.number(text, (digits + 8)..<(digits + 10))
        else { return nil }
        // RFC 5280 §4.1.2.5.1: 50 and above is the last century.
        let year = isTwoDigitYear ? yearText + (yearText >= 50 ? 1900 : 2000) : yearText
        self.init(
            CivilDate(year: Int64(year), month: Int64(month), day: Int64(day)),
            hour: hour,
            minute: minute,
            second: second
        )
    }

    /// The moment in the form that ``init(iso8601:)-(Span<UInt8>)`` reads, the fraction without
    /// trailing zeros.
    ///
    /// Moments outside the years 1…9999 are written as seconds since the epoch.
    public var iso8601: String {
        guard (-62_135_596_800...253_402_300_799).contains(seconds) else { return "@\(seconds)" }
        let secondsOfDay = (seconds % 86_400 + 86_400) % 86_400
        let date = CivilDate(daysSinceEpoch: (seconds - secondsOfDay) / 86_400)
        var text = "\(date.year.padded(to: 4))-\(date.month.padded(to: 2))-"
        text += "\(date.day.padded(to: 2))T"
        text += "\((secondsOfDay / 3_600).padded(to: 2)):\((secondsOfDay / 60 % 60).padded(to: 2)):"
        text += (secondsOfDay % 60).padded(to: 2)
        if nanoseconds > 0 {
            var fraction = Int64(nanoseconds).padded(to: 9)
            while fraction.hasSuffix("0") { fraction.removeLast() }
            text += "." + fraction
        }
        return text + "Z"
    }

    private static func number(_ text: Span<UInt8>, _ range: Range<Int>) -> Int? {
        var value = 0
        for index in range {
            let digit = text[index]
            guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
            // At most nine digits, so that this cannot overflow.
            value = value * 10 + Int(digit - UInt8(ascii: "0"))
        }
        return value
    }
}

extension UnixTime: Codable {
    /// Reads the text of ``iso8601``.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(otherwise: "not a time such as 2026-04-20T10:00:00Z") {
            UnixTime(iso8601: $0)
        }
    }

    /// Writes the text of ``iso8601``.
    public func encode(to encoder: any Encoder) throws {
        try encoder.encode(text: iso8601)
    }
}
