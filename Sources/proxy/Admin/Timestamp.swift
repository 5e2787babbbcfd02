import Glibc

/// The date and time of RFC 3339 in UTC, `2026-04-20T10:00:00Z`.
enum Timestamp {
    /// The text for a number of seconds since 1970-01-01T00:00:00Z, which is clamped to the years
    /// 1970 to 9999.
    static func text(unixSeconds seconds: Int64) -> String {
        var time = time_t(min(max(seconds, 0), 253_402_300_799))
        var parts = tm()
        guard gmtime_r(&time, &parts) != nil else {
            preconditionFailure("Timestamp: every year up to 9999 can be told")
        }
        let day = [parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday].map(padded)
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map(padded)
        return day.joined(separator: "-") + "T" + clock.joined(separator: ":") + "Z"
    }

    private static func padded(_ number: Int32) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}
