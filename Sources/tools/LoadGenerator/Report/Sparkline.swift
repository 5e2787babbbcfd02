/// A row of bars, as one character each.
enum Sparkline {
    private static let bars = Array("▁▂▃▄▅▆▇█")

    /// A bar for each value: the full height is the largest value's, and a gap stands for `nil`.
    static func text(_ values: some Collection<UInt64?>) -> String {
        let largest = values.reduce(0) { max($0, $1 ?? 0) }
        return String(
            values.map { value -> Character in
                guard let value else { return " " }
                guard largest > 0 else { return bars[0] }
                let height = Double(value) / Double(largest) * Double(bars.count - 1)
                return bars[min(Int(height.rounded()), bars.count - 1)]
            }
        )
    }
}

/// The line that shows a run on a terminal, written again each second.
struct LiveLine {
    private let stages: [LoadStage]
    /// The 99th percentiles of the last seconds.
    private var recent: [UInt64?] = []

    /// The most seconds that the sparkline shows.
    private static let secondsMax = 40
    /// The least columns for the sparkline; otherwise it is left out.
    private static let barsMin = 5

    init(_ stages: [LoadStage]) { self.stages = stages }

    /// The line after another second, without control characters.
    ///
    /// - columns: of the terminal. A longer line would wrap, and could not be replaced.
    mutating func text(after second: RunSecond, columns: Int) -> String {
        recent.append(second.hasLatencies ? second.p99 : nil)
        if recent.count > Self.secondsMax { recent.removeFirst() }
        let start = Figures.right(Figures.fixed(second.at, 0), 4) + " s  " + stage(of: second)
        let figures = Self.figures(of: second)
        // The last column stays empty: some terminals wrap when it is filled.
        let space = columns - 1 - start.count - figures.count - "p99   ".count
        guard space >= Self.barsMin else {
            return String((start + figures).prefix(max(columns - 1, 0)))
        }
        let bars = Sparkline.text(recent.suffix(space))
        return "\(start)p99 \(bars)  \(figures)"
    }

    private func stage(of second: RunSecond) -> String {
        guard let stage = second.stage, stages.indices.contains(stage) else { return "" }
        return "stage \(stage + 1)/\(stages.count) \(stages[stage].text)  "
    }

    /// The figures of a second, for a line on a terminal or in a log.
    static func figures(of second: RunSecond) -> String {
        var text = "\(Figures.right(Figures.count(UInt64(second.rate)), 6)) answers/s  "
        for (name, value) in [("p50", second.p50), ("p99", second.p99), ("max", second.max)] {
            text += "\(name) \(Figures.left(Figures.latency(value), 7))  "
        }
        if second.backlog > 0 { text += "backlog \(Figures.count(second.backlog))  " }
        if second.failures > 0 { text += "failed \(Figures.count(second.failures))  " }
        return text + "wrong \(Figures.count(second.deviations))"
    }
}
