/// A length of time as the command line has it.
package struct LoadTime: Equatable, Sendable {
    package let nanoseconds: UInt64

    private static let units: [(name: String, factor: UInt64)] = [
        ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000),
    ]

    /// Reads `500ms`, `10s`, `5m`, `1h`: a whole number and its unit, at most 1,000 hours.
    package init?(_ text: String) {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let unit = text.dropFirst(digits.count)
        guard let count = UInt64(digits), count <= 3_600_000_000,
            let factor = Self.units.first(where: { $0.name == unit })?.factor
        else { return nil }
        let (product, overflow) = count.multipliedReportingOverflow(by: factor)
        guard !overflow, product <= 3_600_000_000_000_000 else { return nil }
        nanoseconds = product
    }
}
