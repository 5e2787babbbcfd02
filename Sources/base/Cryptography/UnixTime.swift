internal import ByteCoding

/// A moment, as seconds and nanoseconds since 1970-01-01T00:00:00Z, without leap seconds.
public struct UnixTime: Hashable, Comparable, Sendable {
    /// Whole seconds since the epoch; negative before it.
    public let seconds: Int64
    /// What is beyond the whole second: 0…999,999,999.
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
    public init?(
        year: Int,
        month: Int,
        day: Int,
        hour: Int,
        minute: Int,
        second: Int,
        nanoseconds: UInt32 = 0
    ) {
        guard (1...9999).contains(year), (1...12).contains(month),
            (1...Self.days(inMonth: month, of: year)).contains(day), (0...23).contains(hour),
            (0...59).contains(minute), (0...59).contains(second), nanoseconds < 1_000_000_000
        else { return nil }
        let date = CivilDate(year: Int64(year), month: Int64(month), day: Int64(day))
        seconds = date.daysSinceEpoch * 86_400 + Int64(hour * 3_600 + minute * 60 + second)
        self.nanoseconds = nanoseconds
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

    private static func days(inMonth month: Int, of year: Int) -> Int {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }
}
