import Histogram

/// The limits of `--fail-if`: a run that exceeds one of them has failed.
package struct RunLimits: Equatable, Sendable {
    private var limits: [Limit] = []

    private struct Limit: Equatable, Sendable {
        let name: String
        let most: UInt64
        /// `most` as it was given.
        let text: String
    }

    /// Counts of the summary. The first two may not grow unless a limit says otherwise.
    private static let counts = ["wrong", "failed", "replays", "backlog"]

    /// No wrong answer, and no failure.
    package static let standard = RunLimits([])

    private init(_ given: [Limit]) {
        limits = given
        for name in Self.counts.prefix(2) where !given.contains(where: { $0.name == name }) {
            limits.append(Limit(name: name, most: 0, text: "0"))
        }
    }

    /// Reads `p99>20ms,wrong>0`: percentiles of the latency with a time, and counts.
    ///
    /// `nil` for another name, a repeated name, and a value that is no time or no whole number.
    package init?(_ text: String) {
        var given: [Limit] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: ">", omittingEmptySubsequences: false)
            guard words.count == 2 else { return nil }
            let (name, value) = (String(words[0]), String(words[1]))
            let isCount = Self.counts.contains(name)
            guard isCount || Summary.percentiles.contains(where: { $0.name == name }),
                let most = isCount ? UInt64(value) : LoadTime(value)?.nanoseconds,
                !given.contains(where: { $0.name == name })
            else { return nil }
            given.append(Limit(name: name, most: most, text: value))
        }
        self.init(given)
    }

    /// The limits that a run exceeds, in words.
    package func exceeded(by summary: Summary) -> [String] { exceeded(summary.value(of:)) }

    /// - value: a count, or nanoseconds of a percentile.
    func exceeded(_ value: (String) -> UInt64) -> [String] {
        limits.compactMap { limit in
            let found = value(limit.name)
            guard found > limit.most else { return nil }
            let isCount = Self.counts.contains(limit.name)
            let text = isCount ? Figures.count(found) : Figures.latency(found)
            return "\(limit.name) is \(text), more than \(limit.text)"
        }
    }
}

extension Summary {
    /// The value that a limit is about.
    fileprivate func value(of name: String) -> UInt64 {
        switch name {
        case "wrong": deviationCount
        case "failed": measurements.failureCount
        case "replays": measurements[.admittedReplays]
        case "backlog": measurements[.backlogMax]
        default:
            Self.percentiles.first { $0.name == name }
                .map { allLatencies.valueAtPercentile($0.percent) } ?? 0
        }
    }
}
