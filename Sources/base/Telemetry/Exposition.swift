/// Writes metrics in a text format that Prometheus reads.
package struct Exposition {
    package enum Format: Sendable {
        /// Version 0.0.4 of the format, which every reader takes.
        case prometheus
        /// OpenMetrics 1.0, which has exemplars.
        case openMetrics
    }

    package private(set) var text = ""
    private let format: Format

    package init(_ format: Format = .prometheus) { self.format = format }

    /// Ends the page.
    package mutating func end() {
        switch format {
        case .prometheus: break
        case .openMetrics: text += "# EOF\n"
        }
    }

    /// Names of the process are the same in all programs.
    private static func fullName(_ name: String) -> String {
        name.hasPrefix("process_") ? name : "portcullis_" + name
    }

    /// Begins a metric: its help and type lines; the type is counter, gauge or histogram.
    package mutating func metric(_ name: String, type: String, help: String) {
        var family = Self.fullName(name)
        switch format {
        case .prometheus: break
        // In OpenMetrics the family of a counter has no suffix.
        case .openMetrics where type == "counter" && name.hasSuffix("_total"):
            family.removeLast("_total".count)
        case .openMetrics: break
        }
        text += "# HELP \(family) \(help)\n# TYPE \(family) \(type)\n"
    }

    /// One sample of the metric that was begun.
    package mutating func sample(
        _ name: String,
        labels: [(String, String)] = [],
        _ value: some CustomStringConvertible,
        behind exemplar: String = ""
    ) {
        text += Self.fullName(name)
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }
            text += "{" + pairs.joined(separator: ",") + "}"
        }
        text += " \(value)\(exemplar)\n"
    }

    /// A gauge with one sample; with none where there is no value.
    package mutating func gauge(
        _ name: String,
        _ value: (some CustomStringConvertible)?,
        help: String
    ) {
        metric(name, type: "gauge", help: help)
        if let value { sample(name, value) }
    }

    /// A counter with one sample.
    package mutating func counter(_ name: String, _ value: UInt64, help: String) {
        metric(name, type: "counter", help: help)
        sample(name, value)
    }

    /// A gauge or counter with a sample for each of these labels.
    package mutating func family<Value: CustomStringConvertible>(
        _ name: String,
        type: String,
        help: String,
        _ samples: [([(String, String)], Value)]
    ) {
        metric(name, type: type, help: help)
        for (labels, value) in samples { sample(name, labels: labels, value) }
    }

    package mutating func counters(of tally: Tally) {
        for counter in Counter.allCases {
            self.counter(counter.name, tally[counter], help: counter.help)
        }
    }

    /// All distributions of a tally, durations in seconds.
    package mutating func distributions(of tally: Tally) {
        for distribution in Distribution.allCases {
            metric(distribution.name, type: "histogram", help: distribution.help)
            let exemplars = distribution == .request ? tally.requestExemplars : nil
            histogram(
                distribution.name,
                tally[distribution],
                unit: distribution.unit,
                lines: HistogramLines(exemplars: exemplars)
            )
        }
    }

    /// One histogram.
    package mutating func histogram(
        _ name: String,
        _ histogram: Histogram,
        unit: Double,
        labels: [(String, String)] = [],
        lines: HistogramLines = HistogramLines()
    ) {
        func exemplar(_ place: Int) -> String {
            switch format {
            case .prometheus: ""
            case .openMetrics: lines.exemplars?[place]?.text(unit: unit) ?? ""
            }
        }
        var seen: UInt64 = 0
        var next = 0
        for (place, bucket) in lines.buckets.enumerated() {
            while next <= bucket {
                seen &+= histogram.buckets[next]
                next += 1
            }
            let bound = Double(Histogram.upperBound(bucket)) * unit
            let labels = labels + [("le", "\(bound)")]
            sample(name + "_bucket", labels: labels, seen, behind: exemplar(place))
        }
        let infinite = labels + [("le", "+Inf")]
        let last = exemplar(lines.buckets.count)
        sample(name + "_bucket", labels: infinite, histogram.count, behind: last)
        sample(name + "_sum", labels: labels, Double(histogram.sum) * unit)
        sample(name + "_count", labels: labels, histogram.count)
    }

    private static func escaped(_ value: String) -> String {
        var out = ""
        // By scalars: a carriage return and the line feed after it are one Character.
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": out += "\\\\"
            case "\"": out += "\\\""
            case "\n": out += "\\n"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}

/// The buckets of a histogram that have a line, and the requests that are named in these lines.
package struct HistogramLines {
    /// In their order.
    fileprivate let buckets: [Int]
    /// Of these buckets, and of all beyond them; `nil` for none.
    fileprivate let exemplars: ExemplarSet?

    package init(_ buckets: [Int] = Histogram.shownBuckets, exemplars: ExemplarSet? = nil) {
        self.buckets = buckets
        self.exemplars = exemplars
    }
}
