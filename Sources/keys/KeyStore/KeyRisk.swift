/// Apple's risk metric of a key and the day it is of, as the table in memory keeps it: 4 bytes.
///
/// The metric is about how many keys of the app the device has had attested within 30 days. Rules
/// compare it with a limit, so what is above ``metricMax`` is kept as that.
package struct KeyRisk: Hashable, Sendable {
    /// The highest metric that is distinguished from higher ones.
    package static let metricMax: UInt16 = .max - 1
    private static let none: UInt16 = .max
    private static let daySeconds: Int64 = 86_400
    /// Days by which a metric may be of the future, since clocks differ.
    private static let aheadDaysMax: Int64 = 7

    private let rawMetric: UInt16
    /// Days since 1970, to the year 2149; 0 when no receipt with a metric has come yet.
    package let day: UInt16

    /// Nothing has been heard of the key.
    package static let unknown = KeyRisk(metric: nil, at: nil)

    /// - Parameters:
    ///   - metric: `nil` when the receipt had none that can be right.
    ///   - second: when the receipt was made that had it, or should have had it; `nil` when there
    ///     was none.
    package init(metric: UInt32?, at second: Int64?) {
        let day = max(second ?? 0, 0) / Self.daySeconds
        self.day = UInt16(exactly: day) ?? .max
        rawMetric =
            day == 0
            ? Self.none
            : metric.map { UInt16(min($0, UInt32(Self.metricMax))) }
                ?? Self.none
    }

    /// The metric; `nil` when it is not known.
    package var metric: UInt16? { rawMetric == Self.none ? nil : rawMetric }

    /// The metric, when it is at most this number of days old. One of the future, as an import may
    /// bring it, is not known.
    ///
    /// - `now`: second of Unix time.
    package func metric(at now: Int64, daysMax: Int64) -> UInt16? {
        let age = now / Self.daySeconds - Int64(day)
        return age >= -Self.aheadDaysMax && age <= daysMax ? metric : nil
    }

    /// Whether it is of a later day.
    func isNewer(than other: KeyRisk) -> Bool { day > other.day }

    /// Whether it is of a later day, and not of the future.
    ///
    /// - `now`: second of Unix time.
    func isNewer(than other: KeyRisk, at now: Int64) -> Bool {
        isNewer(than: other) && Int64(day) <= now / Self.daySeconds + Self.aheadDaysMax
    }
}
