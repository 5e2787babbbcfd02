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
        /// A query, a fragment, a space, an octet outside of US-ASCII, or an encoded `*`.
        case character
        /// A construct that no request may have or that has no single reading.
        case construct(PathConstructs.RawValue)
        case tooManySegments
    }

    /// The most segments a pattern may have.
    package static let segmentsMax = 64

    /// The segments as a request's are read exactly.
    package let segments: [Segment]
    /// The segments as a request's are read by servers that merge slashes and strip parameters.
    package let mergedSegments: [Segment]
    /// Whether it ends in `**`: then any rest matches, also none, so that `/v1/**` takes `/v1`.
    package let hasRest: Bool
    /// The pattern as the rule writes it.
    package let text: String

    /// Every target. `*` of `OPTIONS *` is viewed as `/`.
    package static let all = PathPattern(segments: [], merged: [], hasRest: true, text: "/**")

    private init(segments: [Segment], merged: [Segment], hasRest: Bool, text: String) {
        self.segments = segments
        self.mergedSegments = merged
        self.hasRest = hasRest
        self.text = text
    }

    /// Reads a pattern as a rule writes it.
    ///
    /// - Throws: the first fault found; wildcards before octets before constructs.
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
            !text.lowercased().contains("%2a")
        else { throw .character }

        // Whatever views requests views the pattern, so that both are cut and decoded alike.
        let path = parts.reduce(into: [UInt8]()) { $0 += [UInt8(ascii: "/")] + $1 }
        var view = TargetView()
        view.read(path.span, 0..<path.count)
        guard view.findings.isSubset(of: .readingDependent) else {
            throw .construct(view.findings.rawValue)
        }
        func segments(_ reading: TargetView.Reading) -> [Segment] {
            (0..<view.segmentCount(reading)).map { place in
                let literal = Array(view.octets[view.segment(place, reading)])
                return literal == Array(one) ? .one : .literal(literal)
            }
        }
        self.init(
            segments: segments(.exact),
            merged: segments(.merged),
            hasRest: hasRest,
            text: text
        )
    }

    func segments(_ reading: TargetView.Reading) -> [Segment] {
        switch reading {
        case .exact: segments
        case .merged: mergedSegments
        }
    }

    /// Whether this path is one of them.
    package func matches(_ view: TargetView, _ reading: TargetView.Reading) -> Bool {
        let segments = segments(reading)
        let count = view.segmentCount(reading)
        guard hasRest ? count >= segments.count : count == segments.count else { return false }
        for (place, segment) in segments.enumerated() {
            switch segment {
            case .one:
                guard !view.segment(place, reading).isEmpty else { return false }
            case .literal(let literal):
                guard view.segment(place, reading, equals: literal) else { return false }
            }
        }
        return true
    }

    /// Whether every path of the other pattern is one of this pattern, in both readings.
    package func covers(_ other: PathPattern) -> Bool {
        covers(other, .exact) && covers(other, .merged)
    }

    private func covers(_ other: PathPattern, _ reading: TargetView.Reading) -> Bool {
        let (segments, theirSegments) = (segments(reading), other.segments(reading))
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
