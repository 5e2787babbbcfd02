extension Duration {
    private static let units: [(name: String, milliseconds: Int64)] = [
        ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    /// Reads `500ms`, `10s`, `5m`, `1h`, `7d`: a whole number and its unit, at most 1,000 years.
    init?(setting text: String) {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let count = MappingReader.digits(digits), count <= 31_536_000_000_000,
            let unit = Self.units.first(where: { $0.name == text.dropFirst(digits.count) })
        else { return nil }
        let (product, overflow) = Int64(count).multipliedReportingOverflow(by: unit.milliseconds)
        guard !overflow, product <= 31_536_000_000_000 else { return nil }
        self = .milliseconds(product)
    }

    /// Whole milliseconds; no more than `Int64.max`.
    var settingMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        return overflow ? .max : product + attoseconds / 1_000_000_000_000_000
    }

    /// The duration with the largest unit that divides it.
    package var settingText: String {
        let count = settingMilliseconds
        let unit = Self.units.last { count > 0 && count % $0.milliseconds == 0 } ?? Self.units[1]
        return "\(count / unit.milliseconds)\(unit.name)"
    }
}
