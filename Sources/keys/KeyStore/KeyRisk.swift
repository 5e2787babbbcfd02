/// The risk metric of a key and its day, as the table in memory keeps it: 4 bytes.
///
/// Apple's metric is about the number of the app's keys that the device has had attested within 30
/// days. That of an Android phone is the number of certificates that Google gave it within 30 days.
/// Rules compare a metric with a limit, so a value above ``metricMax`` is kept as ``metricMax``.
package struct KeyRisk: Hashable, Sendable {
    /// The highest metric that is distinguished from higher ones.
    package static let metricMax: UInt16 = .max - 1
    private static let none: UInt16 = .max
    private static let daySeconds: Int64 = 86_400
    /// The most days that a metric may be in the future, since clocks differ.
    private static let aheadDaysMax: Int64 = 7

    private let rawMetric: UInt16
    /// Days since 1970, to the year 2149; 0 when no receipt with a metric has come yet. Of an
    /// Android phone's key it is the day of the enrolment, also without a metric.
    package let day: UInt16

    package static let unknown = KeyRisk(metric: nil, at: nil)

    /// - Parameters:
    ///   - metric: `nil` when the receipt had no valid one.
    ///   - second: the creation of the receipt that had it, or should have had it; `nil` without a
    ///     receipt.
    package init(metric: UInt32?, at second: Int64?) {
        let day = max(second ?? 0, 0) / Self.daySeconds
        self.day = UInt16(exactly: day) ?? .max
        rawMetric =
            day == 0
            ? Self.none
            : metric.map { UInt16(min($0, UInt32(Self.metricMax))) }
                ?? Self.none
    }

    /// The metric; `nil` when it is unknown.
    package var metric: UInt16? { rawMetric == Self.none ? nil : rawMetric }

    /// The metric, when it is at most this number of days old. A metric of the future, as an import
    /// may bring it, counts as unknown.
    ///
    /// - `now`: second of Unix time.
    package func metric(at now: Int64, daysMax: Int64) -> UInt16? {
        let age = now / Self.daySeconds - Int64(day)
        return age >= -Self.aheadDaysMax && age <= daysMax ? metric : nil
    }

    func isNewer(than other: KeyRisk) -> Bool { day > other.day }

    /// Whether this value is of a later day, and not in the future.
    ///
    /// - `now`: second of Unix time.
    func isNewer(than other: KeyRisk, at now: Int64) -> Bool {
        isNewer(than: other) && Int64(day) <= now / Self.daySeconds + Self.aheadDaysMax
    }
}
