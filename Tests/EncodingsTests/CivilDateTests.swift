import Encodings
import Expectations
import Testing

@Suite struct CivilDateTests {
    @Test(
        arguments: [
            (CivilDate(year: 1970, month: 1, day: 1), 0),
            (CivilDate(year: 1969, month: 12, day: 31), -1),
            (CivilDate(year: 2000, month: 2, day: 29), 11_016),
            (CivilDate(year: 1900, month: 3, day: 1), -25_508),
            (CivilDate(year: 1, month: 1, day: 1), -719_162),
            (CivilDate(year: 9999, month: 12, day: 31), 2_932_896),
        ] as [(CivilDate, Int64)]
    )
    func `a day has its number`(date: CivilDate, days: Int64) {
        expectEqual(date.daysSinceEpoch, days)
        expectEqual(CivilDate(daysSinceEpoch: days), date)
    }

    @Test func `each day of 800 years follows the one before`() {
        var before = CivilDate(daysSinceEpoch: -146_098)
        for days in Int64(-146_097)...146_097 {
            let date = CivilDate(daysSinceEpoch: days)
            expectEqual(date.daysSinceEpoch, days)
            let isNext =
                (date.year, date.month, date.day) == (before.year, before.month, before.day + 1)
                || date.day == 1 && before.day >= 28
                    && (date.month == before.month + 1 && date.year == before.year
                        || date.month == 1 && before.month == 12 && date.year == before.year + 1)
            guard isNext else { return #expect(isNext, "\(before) and \(date)") }
            before = date
        }
    }
}
