import ByteCoding

/// The IMF-fixdate of RFC 9110 §5.6.7, `Sun, 06 Nov 1994 08:49:37 GMT`.
package enum HTTPDate {
    /// The 29 bytes for a time.
    ///
    /// `seconds`: since 1970-01-01T00:00:00Z, without leap seconds; 0...253402300799, the end
    ///   of the year 9999, and clamped to it.
    package static func octets(unixSeconds seconds: Int64) -> [UInt8] {
        let seconds = min(max(seconds, 0), 253_402_300_799)
        let days = seconds / 86400
        let second = seconds % 86400
        let date = CivilDate(daysSinceEpoch: days)
        var out: [UInt8] = []
        out.reserveCapacity(29)
        // 1970-01-01 was a Thursday.
        out.append(contentsOf: name("ThuFriSatSunMonTueWed", days % 7))
        out.append(", ")
        appendTwo(date.day, to: &out)
        out.append(Octet.space)
        out.append(contentsOf: name("JanFebMarAprMayJunJulAugSepOctNovDec", date.month - 1))
        out.append(Octet.space)
        appendTwo(date.year / 100, to: &out)
        appendTwo(date.year % 100, to: &out)
        out.append(Octet.space)
        appendTwo(second / 3600, to: &out)
        out.append(UInt8(ascii: ":"))
        appendTwo(second / 60 % 60, to: &out)
        out.append(UInt8(ascii: ":"))
        appendTwo(second % 60, to: &out)
        out.append(" GMT")
        return out
    }

    private static func name(_ names: String, _ index: Int64) -> [UInt8] {
        Array(names.utf8.dropFirst(Int(index) * 3).prefix(3))
    }

    private static func appendTwo(_ number: Int64, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / 10))
        out.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
    }
}
