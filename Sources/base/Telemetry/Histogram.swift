/// A histogram with two buckets for each power of two, for durations in nanoseconds or plain sizes.
///
/// Adding costs a bit count and two additions. The relative width of a bucket is at most one half.
package struct Histogram: Equatable, Sendable {
    /// Two buckets for each of 48 powers of two: nanoseconds up to three days.
    static let bucketCount = 96
    /// The buckets whose bounds a page shows: each power of two between 1 and 2^36.
    package static let shownBuckets = Array(stride(from: 1, to: 74, by: 2))
    /// The shown buckets where there are many histograms: each second power of two from 2^17, which
    /// is 131 µs.
    package static let coarseBuckets = Array(stride(from: 33, to: 74, by: 4))
    /// The same for times without a wait: from 2^14, which is 16 µs, to 17 s.
    package static let shortBuckets = Array(stride(from: 27, to: 68, by: 4))

    package private(set) var buckets = [UInt64](repeating: 0, count: bucketCount)
    package private(set) var count: UInt64 = 0
    package private(set) var sum: UInt64 = 0

    package init() {}

    /// - filled: the buckets that have values: place and count of each. `nil` for a place that no
    ///   histogram has.
    package init?(filled: [(place: Int, count: UInt64)], sum: UInt64) {
        for (place, count) in filled {
            guard buckets.indices.contains(place) else { return nil }
            buckets[place] &+= count
            self.count &+= count
        }
        self.sum = sum
    }

    /// The buckets that have values.
    package var filled: [(place: Int, count: UInt64)] {
        buckets.enumerated().filter { $0.element > 0 }.map { ($0.offset, $0.element) }
    }

    package mutating func add(_ value: UInt64) {
        buckets[Self.bucket(of: value)] &+= 1
        count &+= 1
        sum &+= value
    }

    package mutating func merge(_ other: Histogram) {
        for index in buckets.indices { buckets[index] &+= other.buckets[index] }
        count &+= other.count
        sum &+= other.sum
    }

    /// The bucket of a value: by its highest bit and the next lower one.
    static func bucket(of value: UInt64) -> Int {
        guard value > 1 else { return 0 }
        let high = 63 - value.leadingZeroBitCount
        let half = Int(value >> UInt64(high - 1) & 1)
        return min(high * 2 + half, bucketCount - 1)
    }

    /// The largest value of a bucket.
    static func upperBound(_ bucket: Int) -> UInt64 {
        let high = UInt64(bucket / 2)
        guard high > 0 else { return 1 }
        let width: UInt64 = 1 << (high - 1)
        return (1 << high) + (bucket % 2 == 0 ? width : 2 * width) - 1
    }

    /// For each bound that a page shows, the number of values up to it.
    package var cumulative: [(bound: UInt64, count: UInt64)] {
        var seen: UInt64 = 0
        var next = 0
        return Self.shownBuckets.map { bucket in
            while next <= bucket {
                seen &+= buckets[next]
                next += 1
            }
            return (Self.upperBound(bucket), seen)
        }
    }

    /// A bound that at least this share of the values does not exceed; 0 when empty.
    package func quantile(_ share: Double) -> UInt64 {
        let rank = UInt64((Double(count) * min(max(share, 0), 1)).rounded(.up))
        var seen: UInt64 = 0
        for index in buckets.indices {
            seen &+= buckets[index]
            if seen >= rank, rank > 0 { return Self.upperBound(index) }
        }
        return 0
    }
}

/// One value of a histogram, with the name of its request (OpenMetrics 1.0, "Exemplars").
package struct Exemplar: Sendable {
    /// The kind of the name. The raw value is the label.
    package enum Label: String, Sendable {
        case requestID = "request_id"
        case traceID = "trace_id"
    }

    /// The bytes of a name; the rest is padding.
    package typealias Name = InlineArray<64, UInt8>

    package let label: Label
    private let name: Name
    private let count: Int
    /// In the histogram's own unit.
    package let value: UInt64
    /// Milliseconds since 1970.
    package let at: Int64

    /// - name, count: token characters, so that they need no escape.
    package init(
        _ label: Label,
        _ name: Name,
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

    /// The text after a bucket's sample.
    func text(unit: Double) -> String {
        let name = String(decoding: (0..<count).map { self.name[$0] }, as: UTF8.self)
        return " # {\(label.rawValue)=\"\(name)\"} \(Double(value) * unit) \(Double(at) / 1000)"
    }
}

/// The last exemplar of each bucket that a histogram shows.
package struct ExemplarSet: Sendable {
    private var last: [Exemplar?]
    /// The buckets that are shown; `nil` for those that are shown by default.
    private let shown: [Int]?

    init(shown: [Int]? = nil) {
        self.shown = shown
        last = Array(repeating: nil, count: (shown ?? Histogram.shownBuckets).count + 1)
    }

    mutating func add(_ exemplar: Exemplar) { last[place(exemplar.value)] = exemplar }

    /// - other: of the same buckets.
    mutating func merge(_ other: ExemplarSet) {
        for place in last.indices {
            guard let theirs = other.last[place] else { continue }
            if let own = last[place], own.at >= theirs.at { continue }
            last[place] = theirs
        }
    }

    /// The exemplar of the bucket at this place among the shown ones; the last is `+Inf`.
    subscript(_ place: Int) -> Exemplar? { last[place] }

    private func place(_ value: UInt64) -> Int {
        let bucket = Histogram.bucket(of: value)
        guard let shown else { return min(bucket / 2, Histogram.shownBuckets.count) }
        return shown.firstIndex { bucket <= $0 } ?? shown.count
    }
}
