/// A part of a run with a rate of its own, in the form of `--stage`.
///
///     30s:100/s          an even rate
///     1m:100..500/s      a rate that grows or falls evenly
///     1m:..500/s         the same, from the rate at which the stage before it ends, or from 0
package struct LoadStage: Equatable, Sendable {
    /// As it was given.
    package let text: String
    let length: LoadTime
    /// Requests a second at its start; `nil` for those at the end of the stage before it.
    let first: Double?
    /// Requests a second at its end.
    let last: Double

    /// The highest rate, in requests a second.
    package static let rateMax = 10_000_000.0
    /// The lowest rate above 0. A slower beat is beyond what nanoseconds can count.
    package static let rateMin = 0.001

    /// `nil` for another form, a time of 0, and a rate beyond the bounds.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let length = LoadTime(String(parts[0])), length.nanoseconds > 0,
            parts[1].hasSuffix("/s")
        else { return nil }
        let ends = parts[1].dropLast(2).split(separator: "..", omittingEmptySubsequences: false)
        guard (1...2).contains(ends.count), let end = ends.last, let last = Self.rate(end)
        else { return nil }
        (self.text, self.length, self.last) = (text, length, last)
        if ends.count == 1 {
            first = last
        } else if ends[0].isEmpty {
            first = nil
        } else {
            guard let given = Self.rate(ends[0]) else { return nil }
            first = given
        }
    }

    private static func rate(_ text: Substring) -> Double? {
        guard text.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }),
            let rate = Double(text), rate == 0 || (rateMin...rateMax).contains(rate)
        else { return nil }
        return rate
    }
}
