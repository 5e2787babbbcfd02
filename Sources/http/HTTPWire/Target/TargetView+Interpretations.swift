// A view in other interpretations than as written.
extension TargetView {
    /// The most interpretations of one path that are looked up.
    ///
    /// Only a path with five or more different constructs reaches this number. A path with more
    /// interpretations is refused, unless all rules decide the same.
    package static let interpretationsMax = 256
    /// The most sets of steps of one path that are tried; most have no effect and no look-up.
    static let triesMax = 4_096
    /// The most segments, empty ones included, of a path that is looked up in several
    /// interpretations: each interpretation goes through all of them.
    package static let segmentsMax = 512

    /// How a walk through the interpretations ended.
    package enum Walk: Sendable {
        /// All interpretations were visited.
        case complete
        /// The visitor asked for no more.
        case stopped
        /// There are more than ``interpretationsMax``, or more than ``segmentsMax``.
        case tooMany
    }

    /// Which of these steps may make another path of this one. None for a plain path.
    package func steps(of made: PathInterpretation) -> PathInterpretation {
        var steps: PathInterpretation = []
        let letters = ByteScan.letters(in: bytes.span)
        if letters.hasUpperCase { steps.insert(.foldsCase) }
        if letters.hasDot {
            if hasScript { steps.formUnion([.cutsPathInfo, .dropsScript]) }
            steps.insert(.dropsFormat)
        }
        if !findings.isDisjoint(with: .unplain) { steps.formUnion(unplainSteps) }
        if made.contains(.dropsIndex), hasIndex { steps.insert(.dropsIndex) }
        if made.contains(.foldsPunctuation), ByteScan.hasPunctuation(bytes.span) {
            steps.insert(.foldsPunctuation)
        }
        return steps.intersection(made)
    }

    private var unplainSteps: PathInterpretation {
        var steps: PathInterpretation = []
        if findings.contains(.encodedSlash) { steps.insert(.splitsAtEncodedSlash) }
        if findings.contains(.encodedBackslash) { steps.insert(.splitsAtEncodedBackslash) }
        let isSplit = !steps.isEmpty
        if findings.contains(.backslash) { steps.insert(.splitsAtBackslash) }
        if findings.contains(.pathParameter) {
            steps.formUnion([.removesParameters, .endsAtSemicolon])
        }
        if findings.contains(.encodedParameter) || findings.contains(.pathParameter) && isSplit {
            steps.formUnion([.removesParameters, .removesEncodedParameters])
        }
        // Segments may begin and end elsewhere, so empty ones and scripts may appear.
        if !steps.isEmpty {
            steps.formUnion(.arranging.union([.cutsPathInfo, .dropsScript]))
            if isSplit || findings.contains(.backslash) { steps.insert(.dropsIndex) }
        }
        if findings.contains(.emptySegment) { steps.insert(.mergesSlashes) }
        if findings.contains(.emptySegment), ends.first == 0 { steps.insert(.removesNetworkPath) }
        if findings.contains(.trailingSlash) { steps.insert(.dropsTrailingSlash) }
        // The digits of an escape are letters.
        if findings.contains(.escape) { steps.formUnion([.keepsEscapes, .foldsCase]) }
        return steps
    }

    /// Whether a segment before the last one names a script.
    private var hasScript: Bool {
        for index in 0..<max(0, ends.count - 1)
        where ScriptName.isScript(bytes.span, segment(index)) { return true }
        return false
    }

    /// Whether a segment may be a directory's index.
    private var hasIndex: Bool {
        for index in 0..<ends.count where IndexName.isLikely(bytes.span, segment(index)) {
            return true
        }
        return false
    }

    /// Visits the path in each interpretation that a server makes of it which takes any of these
    /// steps; not as written.
    ///
    /// The visitor gets the interpretation, the bytes of the segments, the end of each segment in
    /// them, and answers whether to go on. Letters and punctuation are not folded. Allocates
    /// nothing once the storage has grown.
    ///
    /// `steps`: what ``steps(of:)`` answered, and `odd`. `odd`: steps that make another pattern of
    /// some pattern; interpretations that differ in these are visited even when the path is the
    /// same in both. `depth`: the number of segments at the beginning that matter, at least.
    package mutating func visitInterpretations(
        _ steps: PathInterpretation,
        odd: PathInterpretation,
        depth: Int,
        _ visit: (PathInterpretation, Span<UInt8>, Span<UInt32>) -> Bool
    ) -> Walk {
        guard ends.count <= Self.segmentsMax else { return .tooMany }
        // Out of the view and back into it, so that the compiler sees that nothing overlaps.
        var visitor = InterpretationVisitor(odd: odd, depth: depth)
        swap(&visitor.arranged, &arranged)
        var spelled = SpelledPath()
        swap(&spelled, &self.spelled)
        swap(&visitor.routed, &routed)
        defer {
            swap(&visitor.arranged, &arranged)
            swap(&visitor.routed, &routed)
            swap(&spelled, &self.spelled)
        }
        var spelling: PathInterpretation = []
        // Counts through all subsets of the steps, the empty one left out.
        var interpretation = PathInterpretation.asWritten
        while true {
            interpretation = interpretation.next(in: steps)
            if interpretation == .asWritten { return .complete }
            guard makesSense(interpretation, odd: odd) else { continue }
            let needed = interpretation.intersection(.spelling)
            let walk: Walk
            // A path without parameters and escapes is spelled in one way.
            if needed.isEmpty || raw.isEmpty {
                walk = visitor.visit(
                    interpretation,
                    of: bytes.span,
                    ends: ends.span,
                    isCutShort: false,
                    visit
                )
            } else {
                if needed != spelling {
                    // One segment is the host of a network path, and one tells that there are more.
                    spelled.read(raw.span, needed, depth: depth + 2)
                    spelling = needed
                }
                walk = visitor.visit(
                    interpretation,
                    of: spelled.bytes.span,
                    ends: spelled.ends.span,
                    isCutShort: spelled.isCutShort,
                    visit
                )
            }
            guard walk == .complete else { return walk }
        }
    }

    /// Whether the steps go together, and no smaller set has the same effect.
    private func makesSense(_ interpretation: PathInterpretation, odd: PathInterpretation) -> Bool {
        guard interpretation.goesTogether else { return false }
        guard interpretation.contains(.removesParameters) else { return true }
        if interpretation.contains(.removesEncodedParameters) {
            return findings.contains(.encodedParameter)
                || !interpretation.isDisjoint(with: [
                    .splitsAtEncodedSlash, .splitsAtEncodedBackslash,
                ])
        }
        return findings.contains(.pathParameter) || odd.contains(.removesParameters)
    }

    /// The segments in an interpretation: one path, or where the interpretation cuts at scripts one
    /// for each script; none when the interpretation makes no path of this one.
    ///
    /// Slow and with copies, for patterns. `rest`: whether more segments may follow.
    package func paths(in interpretation: PathInterpretation, rest: Bool) -> [[[UInt8]]] {
        guard interpretation.goesTogether else { return [] }
        let interpretation = raw.isEmpty ? interpretation.subtracting(.spelling) : interpretation
        let spelling = interpretation.intersection(.spelling)
        var text = bytes
        var arranged = ArrangedPath()
        let done: PathInterpretation
        if spelling.isEmpty {
            done = arranged.arrange(ends.span, isCutShort: false, interpretation, depth: .max)
        } else {
            var spelled = SpelledPath()
            spelled.read(raw.span, spelling, depth: .max)
            text = spelled.bytes
            done = arranged.arrange(
                spelled.ends.span,
                isCutShort: false,
                interpretation,
                depth: .max
            )
        }
        if interpretation.contains(.removesNetworkPath), !done.contains(.removesNetworkPath) {
            return []
        }
        if interpretation.contains(.foldsCase) { text = text.map(ByteScan.folded) }
        var start = arranged.start
        let segments = arranged.ends.map { end in
            let segment = Array(text[start..<arranged.start + Int(end)])
            start = arranged.start + Int(end)
            return segment
        }
        var cut = [segments]
        if interpretation.contains(.cutsPathInfo) {
            let scripts = segments.indices.filter {
                let segment = segments[$0]
                return ScriptName.isScript(segment.span, 0..<segment.count)
            }
            if !scripts.isEmpty { cut = scripts.map { Array(segments[...$0]) } }
        }
        let routed = cut.flatMap { Self.routed($0, interpretation, rest: rest) }
        guard interpretation.contains(.foldsPunctuation) else { return routed }
        return routed.map { path in
            path.map { $0 == [UInt8(ascii: "*")] ? $0 : $0.map(ByteScan.withoutPunctuation) }
        }
    }

    private static func routed(
        _ path: [[UInt8]],
        _ interpretation: PathInterpretation,
        rest: Bool
    ) -> [[[UInt8]]] {
        guard !interpretation.isDisjoint(with: .routing) else { return [path] }
        let bytes = path.flatMap(\.self)
        var end: UInt32 = 0
        let ends = path.map { segment in
            end += UInt32(truncatingIfNeeded: segment.count)
            return end
        }
        var paths: [[[UInt8]]] = []
        var routed = RoutedPath()
        var variant = 0
        while true {
            switch routed.read(
                bytes.span,
                ends.span,
                in: interpretation,
                variant: variant,
                rest: rest
            )
            {
            case .end: return paths
            case .repeated: break
            case .made:
                var start = 0
                paths.append(
                    routed.ends.map { end in
                        defer { start = Int(end) }
                        return Array(routed.bytes[start..<Int(end)])
                    }
                )
            }
            variant += 1
        }
    }
}

/// Takes the second step of interpretations, counts them, and leaves out those that are the same.
private struct InterpretationVisitor {
    let odd: PathInterpretation
    let depth: Int
    var arranged = ArrangedPath()
    var routed = RoutedPath()
    private var count = 0
    private var tried = 0

    init(odd: PathInterpretation, depth: Int) {
        self.odd = odd
        self.depth = depth
    }

    mutating func visit(
        _ interpretation: PathInterpretation,
        of bytes: Span<UInt8>,
        ends: Span<UInt32>,
        isCutShort: Bool,
        _ visit: (PathInterpretation, Span<UInt8>, Span<UInt32>) -> Bool
    ) -> TargetView.Walk {
        tried += 1
        guard tried <= TargetView.triesMax else { return .tooMany }
        let done = arranged.arrange(ends, isCutShort: isCutShort, interpretation, depth: depth)
        // Without effect on the path and on patterns this is an interpretation that was visited
        // before.
        guard interpretation.intersection(.arranging).isSubset(of: done.union(odd)) else {
            return .complete
        }
        let left = bytes.extracting(arranged.start..<bytes.count)
        if interpretation.contains(.foldsCase), !odd.contains(.foldsCase),
            !ByteScan.letters(in: left).hasUpperCase
        {
            return .complete
        }
        if interpretation.contains(.foldsPunctuation), !odd.contains(.foldsPunctuation),
            !ByteScan.hasPunctuation(left)
        {
            return .complete
        }
        // Out of the visitor and back into it, so that the compiler sees that nothing overlaps.
        var arranged = ArrangedPath()
        swap(&arranged, &self.arranged)
        defer { swap(&arranged, &self.arranged) }
        guard interpretation.contains(.cutsPathInfo) else {
            return route(interpretation, of: left, ends: arranged.ends.span, visit)
        }
        var start = 0
        for index in 0..<arranged.ends.count {
            let end = Int(arranged.ends[index])
            defer { start = end }
            guard ScriptName.isScript(left, start..<end),
                index < arranged.ends.count - 1 || odd.contains(.cutsPathInfo)
            else { continue }
            let walk = route(
                interpretation,
                of: left,
                ends: arranged.ends.span.extracting(0..<index + 1),
                visit
            )
            guard walk == .complete else { return walk }
        }
        return .complete
    }

    /// Takes the last step, which may have several results.
    private mutating func route(
        _ interpretation: PathInterpretation,
        of bytes: Span<UInt8>,
        ends: Span<UInt32>,
        _ visit: (PathInterpretation, Span<UInt8>, Span<UInt32>) -> Bool
    ) -> TargetView.Walk {
        let needed = interpretation.intersection(.routing)
        guard !needed.isEmpty else {
            count += 1
            guard count <= TargetView.interpretationsMax else { return .tooMany }
            return visit(interpretation, bytes, ends) ? .complete : .stopped
        }
        var variant = 0
        while true {
            switch routed.read(bytes, ends, in: interpretation, variant: variant) {
            case .end: return .complete
            case .made(let done) where needed.isSubset(of: done.union(odd)):
                count += 1
                guard count <= TargetView.interpretationsMax else { return .tooMany }
                guard visit(interpretation, routed.bytes.span, routed.ends.span) else {
                    return .stopped
                }
            case .repeated, .made: break
            }
            variant += 1
        }
    }
}
