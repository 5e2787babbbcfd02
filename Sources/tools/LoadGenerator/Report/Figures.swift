/// Numbers as people read them.
enum Figures {
    /// Three significant digits and a unit: `612 µs`, `1.24 ms`, `12.4 s`.
    static func latency(_ nanoseconds: UInt64) -> String {
        let value = Double(nanoseconds)
        // 999.5 of a unit would be written as 1000.
        if value < 999_500 { return significant(value / 1e3) + " µs" }
        if value < 999_500_000 { return significant(value / 1e6) + " ms" }
        return significant(value / 1e9) + " s"
    }

    /// `1,234,567`.
    static func count(_ number: UInt64) -> String {
        var text = ""
        let digits = String(number)
        for (place, digit) in digits.enumerated() {
            if place > 0, (digits.count - place) % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return text
    }

    /// `94.2 %`.
    static func percent(_ share: Double) -> String {
        fixed(share * 100, share < 0.1 ? 2 : 1) + " %"
    }

    /// `1.4 GiB`.
    static func bytes(_ count: Int) -> String {
        guard count >= 1024 else { return "\(count) B" }
        var value = Double(count) / 1024
        var units = ["KiB", "MiB", "GiB", "TiB"][...]
        while value >= 1024, units.count > 1 {
            value /= 1024
            units.removeFirst()
        }
        return significant(value) + " " + units[units.startIndex]
    }

    /// A number with this number of decimals.
    static func fixed(_ value: Double, _ places: Int) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "–" }
        let scale = (0..<places).reduce(Int64(1)) { scale, _ in scale * 10 }
        let scaled = Int64((abs(value) * Double(scale)).rounded())
        let sign = value < 0 && scaled > 0 ? "-" : ""
        guard places > 0 else { return sign + String(scaled) }
        let rest = String(scaled % scale)
        let zeros = String(repeating: "0", count: places - rest.count)
        return "\(sign)\(scaled / scale).\(zeros)\(rest)"
    }

    /// Three digits, with as many decimals as they leave.
    private static func significant(_ value: Double) -> String {
        fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0)
    }

    /// `text` with spaces before it.
    static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(width - text.count, 0)) + text
    }

    /// `text` with spaces after it.
    static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(width - text.count, 0))
    }
}
