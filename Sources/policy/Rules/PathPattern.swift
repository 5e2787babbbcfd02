package import HTTPWire

/// Which paths a rule is for: `/v1/orders`, `/v1/users/*`, `/v1/files/**`.
package struct PathPattern: Hashable, Sendable {
    /// One segment of a pattern.
    package enum Segment: Hashable, Sendable {
        /// This segment, percent-decoded; empty behind the last slash of `/v1/`.
        case literal([UInt8])
        /// `*`: any one segment that is not empty.
        case one
    }

    /// Why a text is no pattern.
    package enum Fault: Error, Equatable {
        case noLeadingSlash
        /// A `*` beside other characters in a segment.
        case partialWildcard
        /// `**` before the end.
        case restBeforeEnd
        /// A query, a fragment, a space, a byte outside of US-ASCII, or an encoded `*`.
        case character
        /// Two slashes in a row, or nothing before a `;`: no request can meet it in all readings.
        case emptySegment
        /// A construct that no request may have or that has no single reading.
        case construct(PathConstructs.RawValue)
        case tooManySegments
    }

    /// The most segments a pattern may have.
    package static let segmentsMax = 64

    /// The pattern as servers have it that read paths in one of these ways.
    struct Spelling: Hashable, Sendable {
        let segments: [Segment]
        /// The ``PathReading/spellingBit`` of each reading.
        var readings: UInt32
    }

    /// The segments as a request's are read as written.
    package let segments: [Segment]
    /// The segments in all readings. The masks of all spellings together have every bit.
    let spellings: [Spelling]
    /// The steps of readings that make other segments of it.
    let odd: PathReading
    /// Whether it ends in `**`: then any rest matches, also none, so that `/v1/**` takes `/v1`.
    package let hasRest: Bool
    /// The pattern as the rule writes it.
    package let text: String

    /// Every target. `*` of `OPTIONS *` is viewed as `/`.
    package static let all = PathPattern(segments: [], spellings: nil, hasRest: true, text: "/**")

    private init(segments: [Segment], spellings: [Spelling]?, hasRest: Bool, text: String) {
        self.segments = segments
        self.spellings = spellings ?? [Spelling(segments: segments, readings: .max)]
        self.hasRest = hasRest
        self.text = text
        odd = Self.odd(self.spellings)
    }

    /// Reads a pattern as a rule writes it.
    ///
    /// - Throws: the first fault found; wildcards before bytes before constructs.
    package init(_ text: String) throws(Fault) {
        let octets = Array(text.utf8)
        guard octets.first == UInt8(ascii: "/") else { throw .noLeadingSlash }
        var parts = octets.dropFirst()
            .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count <= Self.segmentsMax else { throw .tooManySegments }
        let rest = Array("**".utf8)[...]
        let hasRest = parts.last == rest
        if hasRest { parts.removeLast() }
        guard !parts.contains(rest) else { throw .restBeforeEnd }
        let one = Array("*".utf8)[...]
        guard parts.allSatisfy({ $0 == one || !$0.contains(UInt8(ascii: "*")) }) else {
            throw .partialWildcard
        }
        guard
            octets.allSatisfy({ (0x21...0x7E).contains($0) && !Array("?#".utf8).contains($0) }),
            !text.lowercased().contains("%2a"), !text.lowercased().contains("%3b")
        else { throw .character }
        let semicolon = UInt8(ascii: ";")
        guard !parts.dropLast(hasRest ? 0 : 1).contains(where: \.isEmpty),
            !parts.contains(where: { $0.first == semicolon })
        else { throw .emptySegment }

        // Whatever views requests views the pattern, so that both are cut and decoded alike.
        let path = parts.reduce(into: [UInt8]()) { $0 += [UInt8(ascii: "/")] + $1 }
        var view = TargetView()
        view.read(path.span, 0..<path.count)
        guard view.findings.isSubset(of: .readingDependent) else {
            throw .construct(view.findings.rawValue)
        }
        let texts = (0..<view.segmentCount).map { Array(view.octets[view.segment($0)]) }
        self.init(
            segments: Self.segments(texts),
            spellings: Self.spellings(of: view),
            hasRest: hasRest,
            text: text
        )
    }

    private static func segments(_ texts: [[UInt8]]) -> [Segment] {
        texts.map { $0 == [UInt8(ascii: "*")] ? .one : .literal($0) }
    }

    /// The pattern in each reading that can make another of it; `nil` when none does.
    private static func spellings(of view: TargetView) -> [Spelling]? {
        guard !view.steps(of: .all).isEmpty else { return nil }
        var spellings: [Spelling] = []
        for bits in 0...PathReading.ofPatterns.rawValue {
            let reading = PathReading(rawValue: bits)
            for path in view.paths(in: reading) {
                let segments = segments(path)
                if let place = spellings.firstIndex(where: { $0.segments == segments }) {
                    spellings[place].readings |= reading.spellingBit
                } else {
                    spellings.append(Spelling(segments: segments, readings: reading.spellingBit))
                }
            }
        }
        return spellings
    }

    /// The steps on which it depends which of the spellings there are.
    private static func odd(_ spellings: [Spelling]) -> PathReading {
        var odd: PathReading = []
        guard spellings.count > 1 else { return odd }
        for place in 0..<PathReading.ofPatterns.rawValue.nonzeroBitCount {
            let step = PathReading(rawValue: 1 << UInt16(place))
            for bits in 0...PathReading.ofPatterns.rawValue {
                let reading = PathReading(rawValue: bits).subtracting(step)
                let other = reading.union(step)
                if spellings.contains(where: {
                    ($0.readings & reading.spellingBit == 0)
                        != ($0.readings & other.spellingBit == 0)
                }) {
                    odd.insert(step)
                }
            }
        }
        return odd
    }

    /// Whether a path's segments are some of this pattern's, in a reading.
    ///
    /// Slow and obvious, for explanations and tests. Lanes ask ``RouteIndex``.
    package func matches(_ path: [[UInt8]], _ reading: PathReading = .asWritten) -> Bool {
        spellings.contains { spelling in
            let segments = spelling.segments
            guard spelling.readings & reading.spellingBit != 0,
                hasRest ? path.count >= segments.count : path.count == segments.count
            else { return false }
            return zip(segments, path).allSatisfy { segment, text in
                switch segment {
                case .one: !text.isEmpty
                case .literal(let literal): text == literal
                }
            }
        }
    }

    /// Whether every path of the other pattern is one of this pattern, as written.
    ///
    /// A rule is found by what is written, so that other readings don't matter here.
    package func covers(_ other: PathPattern) -> Bool {
        let theirSegments = other.segments
        for (place, segment) in segments.enumerated() {
            guard place < theirSegments.count else { return false }
            switch (segment, theirSegments[place]) {
            case (.one, .one): continue
            case (.one, .literal(let literal)):
                guard !literal.isEmpty else { return false }
            case (.literal, .one): return false
            case (.literal(let mine), .literal(let theirs)):
                guard mine == theirs else { return false }
            }
        }
        return hasRest || !other.hasRest && segments.count == theirSegments.count
    }
}
