package import HTTPWire

/// The paths that a rule is for: `/v1/orders`, `/v1/users/*`, `/v1/files/**`.
package struct PathPattern: Hashable, Sendable {
    /// One segment of a pattern.
    package enum Segment: Hashable, Sendable {
        /// This segment, percent-decoded; empty after the last slash of `/v1/`.
        case literal([UInt8])
        /// `*`: any one segment that is not empty.
        case one
    }

    /// Why a text is no pattern.
    package enum Fault: Error, Equatable {
        case noLeadingSlash
        /// A router's placeholder (`{id}`, `<id>`, `[id]`, `:id`), which no request's path has.
        /// With the pattern that was probably meant.
        case placeholder(meant: String)
        /// A `*` beside other characters in a segment.
        case partialWildcard
        /// `**` before the end.
        case restBeforeEnd
        /// A query, a fragment, a space, a byte outside of US-ASCII, or an encoded `*`.
        case character
        /// Two slashes in a row, or nothing before a `;`: no request can meet it in all
        /// interpretations.
        case emptySegment
        /// A construct that no request may have or that has no single interpretation.
        case construct(PathConstructs.RawValue)
        case tooManySegments
    }

    /// The most segments a pattern may have.
    package static let segmentsMax = 64

    /// The pattern as servers interpret it that read paths in one of these ways.
    struct Spelling: Hashable, Sendable {
        let segments: [Segment]
        /// The steps that decide whether a server has this spelling.
        var decisive: PathInterpretation = []
        /// Those of them that a server with this spelling takes. It takes no others of them.
        var taken: PathInterpretation = []

        func isMade(by interpretation: PathInterpretation) -> Bool {
            interpretation.intersection(decisive) == taken
        }
    }

    package let segments: [Segment]
    /// The segments in all interpretations.
    let spellings: [Spelling]
    /// Whether it ends in `**`: then any rest matches, also an empty one, so that `/v1/**` matches
    /// `/v1`.
    package let hasRest: Bool
    /// The pattern as the rule writes it.
    package let text: String

    /// Every target. `*` of `OPTIONS *` is viewed as `/`.
    package static let all = PathPattern(segments: [], spellings: nil, hasRest: true, text: "/**")

    private init(segments: [Segment], spellings: [Spelling]?, hasRest: Bool, text: String) {
        self.segments = segments
        self.spellings = spellings ?? [Spelling(segments: segments)]
        self.hasRest = hasRest
        self.text = text
    }

    /// Reads a pattern as a rule writes it.
    ///
    /// - Throws: the first fault found; placeholders before wildcards before bytes before
    ///   constructs.
    package init(_ text: String) throws(Fault) {
        let bytes = Array(text.utf8)
        guard bytes.first == UInt8(ascii: "/") else { throw .noLeadingSlash }
        var parts = bytes.dropFirst()
            .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count <= Self.segmentsMax else { throw .tooManySegments }
        if let meant = RouterPlaceholder.replaced(in: parts) { throw .placeholder(meant: meant) }
        let rest = Array("**".utf8)[...]
        let hasRest = parts.last == rest
        if hasRest { parts.removeLast() }
        guard !parts.contains(rest) else { throw .restBeforeEnd }
        let one = Array("*".utf8)[...]
        guard parts.allSatisfy({ $0 == one || !$0.contains(UInt8(ascii: "*")) }) else {
            throw .partialWildcard
        }
        guard
            bytes.allSatisfy({ (0x21...0x7E).contains($0) && !Array("?#".utf8).contains($0) }),
            !text.lowercased().contains("%2a"), !text.lowercased().contains("%3b")
        else { throw .character }
        let semicolon = UInt8(ascii: ";")
        guard !parts.dropLast(hasRest ? 0 : 1).contains(where: \.isEmpty),
            !parts.contains(where: { $0.first == semicolon })
        else { throw .emptySegment }

        // The pattern goes through the view of requests, so that both are split and decoded alike.
        let path = parts.reduce(into: [UInt8]()) { $0 += [UInt8(ascii: "/")] + $1 }
        var view = TargetView()
        view.read(path.span, 0..<path.count)
        guard view.findings.isSubset(of: .readingDependent) else {
            throw .construct(view.findings.rawValue)
        }
        let texts = (0..<view.segmentCount).map { Array(view.bytes[view.segment($0)]) }
        self.init(
            segments: Self.segments(texts),
            spellings: Self.spellings(of: view, hasRest: hasRest),
            hasRest: hasRest,
            text: text
        )
    }

    private static func segments(_ texts: [[UInt8]]) -> [Segment] {
        texts.map { $0 == [UInt8(ascii: "*")] ? .one : .literal($0) }
    }

    /// The pattern in each interpretation that can make another one of it; `nil` when none does.
    private static func spellings(of view: TargetView, hasRest: Bool) -> [Spelling]? {
        let steps = view.steps(of: .ofPatterns)
        guard !steps.isEmpty else { return nil }
        var order: [[Segment]] = []
        var interpretations: [[Segment]: Set<PathInterpretation>] = [:]
        var interpretation = PathInterpretation.asWritten
        repeat {
            for path in view.paths(in: interpretation, rest: hasRest) {
                let segments = segments(path)
                if interpretations[segments] == nil { order.append(segments) }
                interpretations[segments, default: []].insert(interpretation)
            }
            interpretation = interpretation.next(in: steps)
        } while interpretation != .asWritten
        return order.flatMap { spellings($0, in: interpretations[$0] ?? [], tried: steps) }
    }

    /// One spelling for each set of the steps that matter. `steps`: those that were tried.
    private static func spellings(
        _ segments: [Segment],
        in interpretations: Set<PathInterpretation>,
        tried steps: PathInterpretation
    ) -> [Spelling] {
        var decisive = steps
        var taken = interpretations
        for step in steps.each
        where taken.allSatisfy({
            taken.contains($0.symmetricDifference(step)) || !$0.union(step).goesTogether
        }) {
            decisive.remove(step)
            taken = Set(taken.map { $0.subtracting(step) })
        }
        return taken.sorted { $0.rawValue < $1.rawValue }
            .map { Spelling(segments: segments, decisive: decisive, taken: $0) }
    }

    /// Whether the pattern matches a path's segments in an interpretation.
    ///
    /// Slow and obvious, for explanations and tests. Event loops ask ``RouteIndex``.
    package func matches(_ path: [[UInt8]], _ interpretation: PathInterpretation = .asWritten)
        -> Bool
    {
        spellings.contains { spelling in
            let segments = spelling.segments
            guard spelling.isMade(by: interpretation),
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

    /// Whether the pattern matches every path of the other pattern, as written.
    ///
    /// The written path selects a rule, so other interpretations don't matter here.
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

/// A variable segment as routers write it. In a rule it would be a text that no path has.
private enum RouterPlaceholder {
    /// The pattern with wildcards instead of placeholders; `nil` without placeholders.
    ///
    /// A placeholder for the rest of a path becomes `**` at the end: `{path...}` (Go), `{*path}`
    /// (ASP.NET, Spring), `{path:path}` (FastAPI), `<path:name>` (Flask), `[...name]` (Next.js),
    /// `:name*`.
    static func replaced(in parts: [ArraySlice<UInt8>]) -> String? {
        var found = false
        let segments = parts.enumerated().map { number, part in
            guard isOne(part) else { return String(decoding: part, as: UTF8.self) }
            found = true
            return number == parts.count - 1 && standsForRest(part) ? "**" : "*"
        }
        return found ? "/" + segments.joined(separator: "/") : nil
    }

    /// Brackets are no characters of a path (RFC 3986 §3.3). A colon is one, but not before a name:
    /// a rule for such a segment writes `%3A`.
    private static func isOne(_ part: ArraySlice<UInt8>) -> Bool {
        if part.contains(where: { Array("{}<>[]".utf8).contains($0) }) { return true }
        guard part.first == UInt8(ascii: ":"), let next = part.dropFirst().first else {
            return false
        }
        return next == UInt8(ascii: "_")
            || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(next | 0x20)
    }

    private static func standsForRest(_ part: ArraySlice<UInt8>) -> Bool {
        let text = String(decoding: part, as: UTF8.self)
        return text.contains("*") || text.contains("...") || text.hasSuffix(":path}")
            || text.hasPrefix("<path:")
    }
}
