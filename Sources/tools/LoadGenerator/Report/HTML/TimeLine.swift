/// The seconds of a run for two pictures over one axis of time: rate and faults, and latencies.
struct TimeLine {
    /// One second, or several next to each other.
    struct Column: Equatable {
        /// Seconds from the start.
        let from: Double
        var to: Double
        var asExpected: UInt64
        var faults: UInt64
        /// Nanoseconds; the highest of the seconds; `nil` without answers as expected.
        var p50: UInt64?
        var p99: UInt64?

        init(_ second: RunSecond) {
            (from, to) = (max(second.at - second.length, 0), second.at)
            asExpected = second.answered - min(second.deviations, second.answered)
            faults = second.faults
            if second.hasLatencies { (p50, p99) = (second.p50, second.p99) }
        }

        mutating func add(_ other: Column) {
            to = other.to
            asExpected += other.asExpected
            faults += other.faults
            if let more = other.p50 { p50 = max(p50 ?? 0, more) }
            if let more = other.p99 { p99 = max(p99 ?? 0, more) }
        }

        private var length: Double { max(to - from, 0.001) }
        var rate: Double { Double(asExpected) / length }
        var faultRate: Double { Double(faults) / length }
    }

    private(set) var columns: [Column] = []
    /// Names and starts of the stages, in seconds.
    private let stages: [(name: String, from: Double)]

    /// The most columns: more could not be told apart.
    static let columnsMax = 240

    init(_ seconds: [RunSecond], stages: [(name: String, from: Double)] = []) {
        self.stages = stages
        let size = max((seconds.count + Self.columnsMax - 1) / Self.columnsMax, 1)
        for (index, second) in seconds.enumerated() {
            let column = Column(second)
            if index % size == 0 {
                columns.append(column)
            } else {
                columns[columns.count - 1].add(column)
            }
        }
    }

    private var end: Double { max(columns.last?.to ?? 0, 0.001) }

    func write(in out: inout HTMLWriter) {
        guard !columns.isEmpty else { return }
        writeRate(in: &out)
        writeLatencies(in: &out)
    }

    private func plot(_ title: String, top: Double, _ text: (Double) -> String) -> Plot {
        var plot = Plot(title: title)
        plot.xTicks = [0, 0.5, 1].map { share in
            Plot.Tick(share: share, text: Figures.fixed(end * share, end < 20 ? 1 : 0) + " s")
        }
        plot.yTicks = [0, 0.5, 1].map { Plot.Tick(share: $0, text: text($0 * top)) }
        plot.marks = stages.filter { $0.from < end }.map {
            Plot.Tick(share: $0.from / end, text: $0.name)
        }
        return plot
    }

    private func range(_ column: Column) -> Range<Double> {
        let from = min(max(column.from / end, 0), 1)
        return from..<max(from, min(column.to / end, 1))
    }

    private func writeRate(in out: inout HTMLWriter) {
        let top = Plot.roundedUp(columns.reduce(0) { max($0, $1.rate + $1.faultRate) })
        var plot = plot("Answers a second", top: top) {
            top < 10 ? Figures.fixed($0, 1) : Figures.count(UInt64($0))
        }
        plot.legend = [("ok", "as expected"), ("bad", "wrong or failed")]
        plot.write(in: &out) { out in
            for column in columns {
                let range = range(column)
                let x =
                    range.lowerBound..<range.lowerBound
                    + (range.upperBound - range.lowerBound) * 0.92
                let faults = min(column.faultRate / top, 1)
                // Few faults must be seen, too.
                let least = faults > 0 ? max(faults, 0.02) : 0
                let whole = min(column.rate / top + least, 1)
                Plot.bar("bad", x: x, y: 0..<least, in: &out)
                Plot.bar("ok", x: x, y: least..<max(whole, least), in: &out)
                let rate = Figures.fixed(column.rate, 1)
                let text =
                    "\(time(column)): \(rate)/s as expected, "
                    + "\(Figures.count(column.faults)) wrong or failed"
                Plot.hint(text, x: range, in: &out)
            }
        }
    }

    private func time(_ column: Column) -> String {
        "\(Figures.fixed(column.from, 0)) to \(Figures.fixed(column.to, 0)) s"
    }

    private func writeLatencies(in out: inout HTMLWriter) {
        let highest = columns.reduce(0) { max($0, $1.p99 ?? 0) }
        let top = Plot.roundedUp(Double(highest))
        var plot = plot("Latency", top: top) { $0 == 0 ? "0" : Figures.latency(UInt64($0)) }
        plot.legend = [("p50", "p50"), ("p99", "p99")]
        plot.write(in: &out) { out in
            writeCurve("p99", of: \.p99, top: top, in: &out)
            writeCurve("p50", of: \.p50, top: top, in: &out)
            for column in columns {
                let texts = [column.p50, column.p99].map { $0.map(Figures.latency) ?? "–" }
                let text = "\(time(column)): p50 \(texts[0]), p99 \(texts[1])"
                Plot.hint(text, x: range(column), in: &out)
            }
        }
    }

    /// Writes a level line for each column, joined to the next one; a gap where there is no value.
    private func writeCurve(
        _ style: StaticString,
        of value: (Column) -> UInt64?,
        top: Double,
        in out: inout HTMLWriter
    ) {
        var path = ""
        var isDrawing = false
        for column in columns {
            guard let value = value(column) else {
                isDrawing = false
                continue
            }
            let range = range(column)
            let y = Figures.fixed((1 - min(Double(value) / top, 1)) * Plot.height, 1)
            path +=
                "\(isDrawing ? "L" : "M")\(Figures.fixed(range.lowerBound * Plot.width, 1)) \(y)"
            path += "L\(Figures.fixed(range.upperBound * Plot.width, 1)) \(y)"
            isDrawing = true
        }
        out.element("path", ["class": "\(style)", "d": path], text: "")
    }
}
