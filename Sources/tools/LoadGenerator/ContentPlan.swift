/// The size and the framing of the requests' content.
package struct ContentPlan: Equatable, Sendable {
    /// Bytes; 0 for no content.
    package let sizes: [Int]
    package var isChunked = false
    /// Content that is sent as it is; otherwise it is made.
    private(set) var given: [UInt8]?

    /// The most bytes of content: memory holds each size twice, original and changed.
    package static let sizeMax = 64 << 20
    /// A range is sent as this number of sizes, evenly spread; the bytes of each are made once.
    private static let stepsMax = 16

    package static let none = ContentPlan(0...0)

    package init(_ range: ClosedRange<Int>, isChunked: Bool = false) {
        let span = range.upperBound - range.lowerBound
        let steps = min(span, Self.stepsMax - 1)
        sizes = (0...steps).map { range.lowerBound + (steps == 0 ? 0 : span / steps * $0) }
        self.isChunked = isChunked
    }

    init(_ content: [UInt8]) {
        self.init(content.count...content.count)
        given = content
    }

    /// Reads `200` or `100..2000`.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let ends = [parts.first, parts.last].compactMap { $0.flatMap { Int($0) } }
        guard parts.count == 1 || (parts.count == 3 && parts[1].isEmpty), ends.count == 2,
            ends[0] >= 0, ends[0] <= ends[1], ends[1] <= Self.sizeMax
        else { return nil }
        self.init(ends[0]...ends[1])
    }
}
