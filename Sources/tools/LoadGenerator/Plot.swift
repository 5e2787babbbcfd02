import ConfigurationReading
import Histogram
import Rules

/// The summary as a picture: latency by percentile, latency over time, answers over time.
package struct Plot {
    private let summary: Summary
    private var drawing = Drawing(width: 1080, height: 980)

    private static let left = 84.0
    private static let right = 860.0

    /// Colours that colour-blind readers can tell apart (Okabe and Ito).
    private static func color(_ kind: RequestKind) -> String {
        switch kind {
        case .good: "#0072B2"
        case .missing: "#009E73"
        case .replayed: "#D55E00"
        case .tampered: "#CC79A7"
        case .stale: "#E69F00"
        case .unknown: "#56B4E9"
        }
    }

    package init(_ summary: Summary) {
        self.summary = summary
    }

    /// The file.
    package var svg: String {
        var plot = self
        plot.head()
        plot.percentiles(top: 128, bottom: 468)
        plot.timeline(top: 548, bottom: 748)
        plot.rates(top: 812, bottom: 922)
        return plot.drawing.svg(title: "\(summary.plan.method) \(summary.plan.target)")
    }

    private mutating func head() {
        let plan = summary.plan
        let title = "\(plan.method) \(plan.target)"
        drawing.text(title, Self.left, 42, .init(size: 21, isBold: true))
        let below = "rule \(plan.rule.id), \(plan.rule.modeText) · \(plan.loadText)"
        drawing.text(below, Self.left, 64, .init(size: 13, color: Drawing.faint))
        let sent = Figures.count(summary.measurements.sent)
        let verdict =
            summary.isAsExpected
            ? "all \(sent) requests answered as expected"
            : "\(Figures.count(summary.deviationCount)) of \(sent) otherwise than expected, "
                + "\(Figures.count(summary.unanswered)) unanswered"
        drawing.text(
            verdict,
            Self.left,
            84,
            .init(size: 13, color: summary.isAsExpected ? "#1b7a3d" : Drawing.alarm, isBold: true)
        )
    }

    private mutating func panel(_ title: String, top: Double) {
        drawing.text(title, Self.left, top - 14, .init(size: 14, isBold: true))
    }

    private mutating func horizontal(_ scale: Scale, count: Int, text: (Double) -> String) {
        for tick in scale.ticks(about: count) {
            let y = scale.place(tick)
            drawing.line((Self.left, y), (Self.right, y), color: Drawing.grid)
            drawing.text(
                text(tick),
                Self.left - 8,
                y + 4,
                .init(color: Drawing.faint, anchor: .end)
            )
        }
    }

    private static func latency(_ nanoseconds: Double) -> String {
        Figures.latency(UInt64(max(nanoseconds, 0))).replacing(".00", with: "")
            .replacing(".0 ", with: " ")
    }

    // MARK: By percentile

    private struct Curve {
        let kind: RequestKind
        let latencies: Measurements.Latencies
    }

    private var curves: [Curve] {
        RequestKind.allCases.compactMap { kind in
            var latencies = Measurements.latencies()
            for sending in Sending.allCases where sending.kind == kind {
                if let row = summary.latencies(sending) { latencies.add(row) }
            }
            return latencies.totalCount > 0 ? Curve(kind: kind, latencies: latencies) : nil
        }
    }

    private mutating func percentiles(top: Double, bottom: Double) {
        let counted = summary.isOpenLoop ? "the moment it was due" : "the moment it was sent"
        panel("Latency by percentile, from \(counted)", top: top)
        let curves = curves
        let most = Double(curves.map(\.latencies.totalCount).max() ?? 1)
        let end = max(min(Scale.log10(most), 5), 2)
        let x = Scale(0...end, to: Self.left...Self.right)
        let least = curves.map { Double($0.latencies.valueAtPercentile(1)) }.min() ?? 1e5
        let highest = curves.map { Double($0.latencies.valueAtPercentile(100)) }.max() ?? 1e6
        let y = Self.latencyScale(least, highest, top, bottom)
        horizontal(y, count: 8, text: Self.latency)
        let names = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"]
        for (power, name) in names.enumerated() where Double(power) <= end + 0.01 {
            let place = x.place(Double(power))
            drawing.line((place, top), (place, bottom), color: Drawing.grid)
            drawing.text(name, place, bottom + 18, .init(color: Drawing.faint, anchor: .middle))
        }
        drawing.text(
            "share of requests answered as expected that took no longer",
            (Self.left + Self.right) / 2,
            bottom + 38,
            .init(color: Drawing.faint, anchor: .middle)
        )
        for curve in curves.reversed() {
            let own = min(Scale.log10(Double(curve.latencies.totalCount)), end)
            let points = stride(from: 0, through: own, by: end / 120).map { power in
                let percent = 100 - 100 / Self.tenTo(power)
                let value = Double(curve.latencies.valueAtPercentile(percent))
                return (x: x.place(power), y: y.place(value))
            }
            let width = curve.kind == .good ? 3.0 : 1.8
            drawing.path(points, color: Self.color(curve.kind), width: width)
        }
        legend(curves, top: top)
    }

    private mutating func legend(_ curves: [Curve], top: Double) {
        var y = top + 4
        for curve in curves {
            let x = Self.right + 24
            drawing.rectangle(x, y - 5, 18, 5, Self.color(curve.kind))
            let count = Figures.count(curve.latencies.totalCount)
            drawing.text(curve.kind.rawValue, x + 26, y + 1, .init(size: 13, isBold: true))
            drawing.text(count, x + 26, y + 17, .init(size: 11, color: Drawing.faint))
            let values = [50.0, 99, 99.99].map { percent in
                Figures.latency(curve.latencies.valueAtPercentile(percent))
            }
            let text = "p50 \(values[0]), p99 \(values[1])"
            drawing.text(text, x + 26, y + 32, .init(size: 11, color: Drawing.faint))
            drawing.text(
                "p99.99 \(values[2])",
                x + 26,
                y + 47,
                .init(size: 11, color: Drawing.faint)
            )
            y += 64
        }
    }

    private static func latencyScale(
        _ least: Double,
        _ highest: Double,
        _ top: Double,
        _ bottom: Double
    ) -> Scale {
        let low = max(least * 0.85, 1_000)
        return Scale(
            low...max(highest * 1.1, low * 10),
            to: top...bottom,
            isLogarithmic: true,
            isFlipped: true
        )
    }

    /// Ten to a power of 0 or more, to three digits: e^(power · ln 10) by its series.
    static func tenTo(_ power: Double) -> Double {
        let whole = Int(power)
        let rest = (power - Double(whole)) * 2.302_585_092_994_046
        var term = 1.0
        var sum = 1.0
        for place in 1..<20 {
            term *= rest / Double(place)
            sum += term
        }
        for _ in 0..<whole { sum *= 10 }
        return sum
    }

    // MARK: Over time

    private var end: Double { max(summary.seconds.last?.at ?? 1, 1) }

    private mutating func timeline(top: Double, bottom: Double) {
        panel("Latency over time, by second", top: top)
        let seconds = summary.seconds.filter { $0.interval.latencies.totalCount > 0 }
        let series: [(name: String, percent: Double, color: String)] = [
            ("max", 100, "#9aa7b4"), ("p99", 99, "#D55E00"), ("p50", 50, "#0072B2"),
        ]
        let values = series.map { line in
            seconds.map { Double($0.interval.latencies.valueAtPercentile(line.percent)) }
        }
        let least = values.last?.min() ?? 1e5
        let y = Self.latencyScale(least, values.first?.max() ?? 1e6, top, bottom)
        let x = Scale(0...end, to: Self.left...Self.right)
        horizontal(y, count: 6, text: Self.latency)
        times(x, bottom: bottom)
        for (line, values) in zip(series, values) {
            let points = zip(seconds, values).map { (x: x.place($0.at), y: y.place($1)) }
            drawing.path(points, color: line.color)
        }
        var height = top + 4
        for line in series {
            drawing.rectangle(Self.right + 24, height - 5, 18, 5, line.color)
            drawing.text(line.name, Self.right + 50, height + 1, .init(size: 13, isBold: true))
            height += 22
        }
    }

    private mutating func times(_ scale: Scale, bottom: Double) {
        for tick in scale.ticks(about: 10) {
            let text = "\(Figures.fixed(tick, tick == tick.rounded() ? 0 : 1)) s"
            let x = scale.place(tick)
            drawing.text(text, x, bottom + 18, .init(color: Drawing.faint, anchor: .middle))
        }
    }

    private mutating func rates(top: Double, bottom: Double) {
        panel("Answers a second", top: top)
        // What is left at the end is too short for a rate.
        let rates = summary.seconds.filter { $0.length > 0.5 }.map { second in
            (at: second.at, rate: Double(second.interval.answered) / max(second.length, 0.001))
        }
        let highest = max(rates.map(\.rate).max() ?? 1, summary.plan.options.pacing.rate ?? 1)
        let y = Scale(0...highest * 1.1, to: top...bottom, isFlipped: true)
        let x = Scale(0...end, to: Self.left...Self.right)
        horizontal(y, count: 4) { Figures.count(UInt64($0)) }
        times(x, bottom: bottom)
        let points = rates.map { (x: x.place($0.at), y: y.place($0.rate)) }
        drawing.path(points, color: "#0072B2", isFilledTo: bottom)
        for second in summary.seconds
        where second.interval.deviations + second.interval.failures > 0 {
            drawing.rectangle(x.place(second.at) - 2, top, 4, bottom - top, Drawing.alarm)
        }
        drawing.rectangle(Self.right + 24, top - 1, 18, 5, "#0072B2")
        drawing.text("answers", Self.right + 50, top + 5, .init(size: 13, isBold: true))
        guard summary.seconds.contains(where: { $0.interval.deviations + $0.interval.failures > 0 })
        else { return }
        drawing.rectangle(Self.right + 24, top + 21, 18, 5, Drawing.alarm)
        drawing.text("deviations", Self.right + 50, top + 27, .init(size: 13, isBold: true))
    }
}
