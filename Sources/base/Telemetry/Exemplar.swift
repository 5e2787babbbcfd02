/// One value of a histogram, with the name of the request that brought it (OpenMetrics 1.0,
/// "Exemplars").
package struct Exemplar: Sendable {
    /// What the name is. The raw value is the label.
    package enum Label: String, Sendable {
        case requestID = "request_id"
        case traceID = "trace_id"
    }

    package let label: Label
    private let name: InlineArray<64, UInt8>
    private let count: Int
    /// In the histogram's own unit.
    package let value: UInt64
    /// Milliseconds since 1970.
    package let at: Int64

    /// - name, count: token characters, so that they need no escape.
    package init(
        _ label: Label,
        _ name: InlineArray<64, UInt8>,
        count: Int,
        value: UInt64,
        at: Int64
    ) {
        self.label = label
        self.name = name
        self.count = min(max(count, 0), 64)
        self.value = value
        self.at = at
    }

    /// What stands behind a bucket's sample.
    func text(unit: Double) -> String {
        let name = String(decoding: (0..<count).map { self.name[$0] }, as: UTF8.self)
        return " # {\(label.rawValue)=\"\(name)\"} \(Double(value) * unit) \(Double(at) / 1000)"
    }
}

/// The last exemplar of each bucket that a histogram shows.
package struct ExemplarSet: Sendable {
    private var last: [Exemplar?]

    init() { last = Array(repeating: nil, count: Histogram.shownBuckets.count + 1) }

    mutating func add(_ exemplar: Exemplar) { last[Self.place(exemplar.value)] = exemplar }

    mutating func merge(_ other: ExemplarSet) {
        for place in last.indices {
            guard let theirs = other.last[place] else { continue }
            if let own = last[place], own.at >= theirs.at { continue }
            last[place] = theirs
        }
    }

    /// Of the bucket at a place among those that are shown; the last is `+Inf`.
    subscript(_ place: Int) -> Exemplar? { last[place] }

    private static func place(_ value: UInt64) -> Int {
        min(Histogram.bucket(of: value) / 2, Histogram.shownBuckets.count)
    }
}
