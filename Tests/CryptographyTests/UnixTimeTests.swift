import Cryptography
import Expectations
import Testing

@Suite struct UnixTimeTests {
    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0, 0), ("1969-12-31T23:59:59Z", -1, 0),
            ("2000-02-29T12:34:56Z", 951_827_696, 0), ("2038-01-19T03:14:08Z", 2_147_483_648, 0),
            ("2020-08-23T11:55:24.309Z", 1_598_183_724, 309_000_000),
            ("2026-01-01T00:00:00.32Z", 1_767_225_600, 320_000_000),
            ("9999-12-31T23:59:59.999999999Z", 253_402_300_799, 999_999_999),
            ("0001-01-01T00:00:00Z", -62_135_596_800, 0),
        ] as [(String, Int64, UInt32)]
    )
    func `is read from ISO 8601 and written back`(text: String, seconds: Int64, nanoseconds: UInt32)
    {
        let time = UnixTime(iso8601: text)
        expectEqual(time, UnixTime(seconds: seconds, nanoseconds: nanoseconds))
        expectEqual(time?.iso8601, text)
    }

    @Test(arguments: [
        "", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00z", "2026-01-01t00:00:00Z",
        "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00.1234567890Z",
        "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z",
        "2026-01-32T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z", "2026-06-30T23:59:60Z", "0000-01-01T00:00:00Z",
        " 2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z ", "2026-1-01T00:00:000Z",
        "+026-01-01T00:00:00Z",
        "2026-01-01T00:00:0\u{0661}Z",
    ])
    func `nothing else is a time`(text: String) {
        expectEqual(UnixTime(iso8601: text), nil)
    }

    @Test func `every 13th day of 2000 years comes back`() {
        let first: Int64 = -62_135_596_800
        let times = (0..<56_000 as Range<Int64>).map { day in
            UnixTime(seconds: first + day * 13 * 86_400)
        }
        let lost = times.filter { UnixTime(iso8601: $0.iso8601) != $0 }
        #expect(lost.isEmpty, "\(lost.prefix(3))")
    }

    @Test func `a moment outside the years 1…9999 is written as its seconds`() {
        for seconds in [Int64.min, -62_135_596_801, 253_402_300_800, .max] {
            expectEqual(UnixTime(seconds: seconds).iso8601, "@\(seconds)")
        }
    }

    @Test func `advancing stops at the ends`() {
        expectEqual(UnixTime(seconds: .max).advanced(bySeconds: 1).seconds, .max)
        expectEqual(UnixTime(seconds: .min).advanced(bySeconds: -1).seconds, .min)
        #expect(UnixTime(seconds: 1, nanoseconds: 5) < UnixTime(seconds: 1, nanoseconds: 6))
    }
}
