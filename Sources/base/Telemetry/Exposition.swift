/// Writes metrics in the text format that Prometheus reads (version 0.0.4).
package struct Exposition {
    package private(set) var text = ""

    package init() {}

    /// Begins a metric: its help and type lines; the type is counter, gauge or histogram.
    package mutating func metric(_ name: String, type: String, help: String) {
        text += "# HELP portcullis_\(name) \(help)\n# TYPE portcullis_\(name) \(type)\n"
    }

    /// One sample of the metric that was begun.
    package mutating func sample(
        _ name: String,
        _ labels: [(String, String)] = [],
        _ value: some CustomStringConvertible
    ) {
        text += "portcullis_\(name)"
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }
            text += "{" + pairs.joined(separator: ",") + "}"
        }
        text += " \(value)\n"
    }

    /// All counters of a tally.
    package mutating func counters(of tally: Tally) {
        for counter in Counter.allCases {
            metric(counter.name, type: "counter", help: counter.help)
            sample(counter.name, [], tally[counter])
        }
    }

    /// All distributions of a tally, durations in seconds.
    package mutating func distributions(of tally: Tally) {
        for distribution in Distribution.allCases {
            metric(distribution.name, type: "histogram", help: distribution.help)
            histogram(distribution.name, tally[distribution], unit: distribution.unit)
        }
    }

    /// One histogram: a bucket line for each power of two between 1 and 2^36 units.
    package mutating func histogram(
        _ name: String,
        _ histogram: Histogram,
        unit: Double,
        labels: [(String, String)] = []
    ) {
        var seen: UInt64 = 0
        for bucket in histogram.buckets.indices {
            seen &+= histogram.buckets[bucket]
            guard bucket % 2 == 1, bucket < 74 else { continue }
            let bound = Double(Histogram.upperBound(bucket)) * unit
            sample(name + "_bucket", labels + [("le", "\(bound)")], seen)
        }
        sample(name + "_bucket", labels + [("le", "+Inf")], histogram.count)
        sample(name + "_sum", labels, Double(histogram.sum) * unit)
        sample(name + "_count", labels, histogram.count)
    }

    private static func escaped(_ value: String) -> String {
        var out = ""
        // By scalars: a line feed behind a carriage return is one Character with it.
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
