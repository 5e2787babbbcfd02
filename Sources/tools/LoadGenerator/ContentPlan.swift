/// How large the content of requests is, and how it is framed.
package struct ContentPlan: Equatable, Sendable {
    /// Bytes; 0 for no content.
    package let sizes: [Int]
    package let isChunked: Bool

    /// The most bytes of content: each size is held twice, as it is and changed.
    package static let sizeMax = 64 << 20
    /// A range is sent as so many sizes, evenly spread: each has its bytes ready.
    private static let stepsMax = 16

    package static let none = ContentPlan(0...0, isChunked: false)

    package init(_ range: ClosedRange<Int>, isChunked: Bool) {
        let span = range.upperBound - range.lowerBound
        let steps = min(span, Self.stepsMax - 1)
        sizes = (0...steps).map { range.lowerBound + (steps == 0 ? 0 : span / steps * $0) }
        self.isChunked = isChunked
    }

    /// Reads `200` or `100..2000`.
    package init?(_ text: String, isChunked: Bool) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let ends = [parts.first, parts.last].compactMap { $0.flatMap { Int($0) } }
        guard parts.count == 1 || (parts.count == 3 && parts[1].isEmpty), ends.count == 2,
            ends[0] >= 0, ends[0] <= ends[1], ends[1] <= Self.sizeMax
        else { return nil }
        self.init(ends[0]...ends[1], isChunked: isChunked)
    }
}
