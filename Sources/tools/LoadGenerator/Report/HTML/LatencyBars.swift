import Glibc
import Histogram

/// The latencies of a run in bars of equal relative width.
struct LatencyBars: Equatable {
    /// The latencies from one bound to the next.
    struct Bar: Equatable {
        /// Nanoseconds.
        let from: Double
        let to: Double
        var count: UInt64
    }

    private(set) var bars: [Bar] = []

    /// The number of bars.
    private static let count = 48

    init(_ latencies: Measurements.Latencies) {
        guard latencies.totalCount > 0 else { return }
        let low = max(Double(latencies.valueAtPercentile(0)), 1)
        // A bar has to have a width, also where all latencies are equal.
        let high = max(Double(latencies.valueAtPercentile(100)), low * 1.1)
        let factor = pow(high / low, 1 / Double(Self.count))
        var from = low
        for _ in 0..<Self.count {
            bars.append(Bar(from: from, to: from * factor, count: 0))
            from *= factor
        }
        for value in latencies.recordedValues() {
            let latency = Double(value.value)
            let place = bars.firstIndex { latency < $0.to } ?? bars.count - 1
            bars[place].count += UInt64(value.count)
        }
    }

    private var countMax: UInt64 { bars.reduce(0) { max($0, $1.count) } }

    /// Where a latency is on the axis, in shares.
    func place(of latency: UInt64) -> Double {
        guard let index = bars.lastIndex(where: { $0.from <= Double(latency) }) else { return 0 }
        let bar = bars[index]
        let inside = (Double(latency) - bar.from) / (bar.to - bar.from)
        return min((Double(index) + inside) / Double(bars.count), 1)
    }

    /// Writes the picture.
    ///
    /// - marks: percentiles with their names.
    func write(marks: [(name: String, latency: UInt64)], in out: inout HTMLWriter) {
        guard let first = bars.first, let last = bars.last else { return }
        var plot = Plot(title: "Latency: how many answers took how long")
        let middle = bars[bars.count / 2].from
        plot.xTicks = [first.from, middle, last.to].map {
            Plot.Tick(share: 0, text: Figures.latency(UInt64($0)))
        }
        let top = Double(countMax)
        plot.yTicks = [0.0, 1].map {
            Plot.Tick(share: $0, text: Figures.count(UInt64(top * $0)))
        }
        plot.marks = marks.map { mark in
            let text = "\(mark.name) \(Figures.latency(mark.latency))"
            return Plot.Tick(share: place(of: mark.latency), text: text)
        }
        let width = 1 / Double(bars.count)
        plot.write(in: &out) { out in
            for (index, bar) in bars.enumerated() where bar.count > 0 {
                let x = Double(index) * width..<Double(index + 1) * width
                // The least height that can be seen: the tail matters most.
                let height = max(Double(bar.count) / top, 0.008)
                Plot.bar(
                    "ok",
                    x: x.lowerBound..<x.lowerBound + width * 0.9,
                    y: 0..<height,
                    in: &out
                )
                let range = [bar.from, bar.to].map { Figures.latency(UInt64($0)) }
                let count = Figures.count(bar.count)
                Plot.hint("\(range[0]) to \(range[1]): \(count) answers", x: x, in: &out)
            }
        }
    }
}
