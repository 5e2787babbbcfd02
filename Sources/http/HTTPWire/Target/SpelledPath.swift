/// A path cut into segments as one interpretation has it: the first step of an interpretation.
struct SpelledPath: Sendable {
    /// The bytes of all segments, without what separates them.
    private(set) var bytes: [UInt8] = []
    /// The end of each segment in ``bytes``.
    private(set) var ends: [UInt32] = []
    /// Whether the path has more segments than were read.
    private(set) var isCutShort = false

    /// Reads a path without its first slash.
    ///
    /// `interpretation`: of ``PathInterpretation/spelling``; the rest has no effect. `depth`: the
    /// most segments with bytes to read.
    mutating func read(_ path: Span<UInt8>, _ interpretation: PathInterpretation, depth: Int) {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        isCutShort = false
        var isInParameter = false
        var filled = 0
        var index = 0
        while index < path.count {
            var byte = path[index]
            var isEncoded = false
            if byte == UInt8(ascii: "%"), !interpretation.contains(.keepsEscapes),
                index + 2 < path.count,
                let high = ASCIIByte.hexadecimal(path[index + 1]),
                let low = ASCIIByte.hexadecimal(path[index + 2])
            {
                byte = high &<< 4 | low
                isEncoded = true
                index += 2
            }
            index += 1
            if byte == UInt8(ascii: ";"), !isEncoded, interpretation.contains(.endsAtSemicolon) {
                break
            }
            // A server that removes parameters before it decodes has no encoded separator within
            // one.
            let isHidden =
                isInParameter && isEncoded && !interpretation.contains(.removesEncodedParameters)
            if !isHidden, interpretation.splits(at: byte, isEncoded: isEncoded) {
                if bytes.count > Int(ends.last ?? 0) { filled += 1 }
                ends.append(UInt32(truncatingIfNeeded: bytes.count))
                isInParameter = false
                guard filled < depth else {
                    isCutShort = true
                    return
                }
                continue
            }
            if byte == UInt8(ascii: ";"), interpretation.removesParameter(isEncoded: isEncoded) {
                isInParameter = true
            }
            if !isInParameter { bytes.append(byte) }
        }
        ends.append(UInt32(truncatingIfNeeded: bytes.count))
    }
}

extension PathInterpretation {
    fileprivate func splits(at byte: UInt8, isEncoded: Bool) -> Bool {
        switch byte {
        case UInt8(ascii: "/"): !isEncoded || contains(.splitsAtEncodedSlash)
        case UInt8(ascii: "\\"):
            contains(isEncoded ? .splitsAtEncodedBackslash : .splitsAtBackslash)
        default: false
        }
    }

    fileprivate func removesParameter(isEncoded: Bool) -> Bool {
        contains(isEncoded ? .removesEncodedParameters : .removesParameters)
    }
}

/// The segments that an interpretation leaves of a path: its second step.
struct ArrangedPath: Sendable {
    /// The end of each segment that is left, counted from ``start``.
    private(set) var ends: [UInt32] = []
    /// The first byte of the first segment that is left.
    private(set) var start = 0

    /// Leaves out what the interpretation leaves out, and answers which of its steps did so.
    ///
    /// `source`: the end of each segment. `isCutShort`: whether the path goes on after them.
    /// `depth`: the number of segments at the beginning that matter.
    mutating func arrange(
        _ source: Span<UInt32>,
        isCutShort: Bool,
        _ interpretation: PathInterpretation,
        depth: Int
    ) -> PathInterpretation {
        ends.removeAll(keepingCapacity: true)
        start = 0
        var done: PathInterpretation = []
        var index = 0
        var before: UInt32 = 0
        if interpretation.contains(.removesNetworkPath) {
            // The WHATWG parser skips any number of slashes before the host. Others end at the
            // second one, and what they make of `///x` is what merging makes of it.
            while index < source.count, source[index] == 0 { index += 1 }
            guard index > 0, index < source.count else { return [] }
            before = source[index]
            index += 1
            done.insert(.removesNetworkPath)
        }
        start = Int(before)
        let merges = interpretation.contains(.mergesSlashes)
        while index < source.count {
            let end = source[index]
            if merges, end == before, index < source.count - 1 {
                done.insert(.mergesSlashes)
            } else {
                ends.append(end - UInt32(truncatingIfNeeded: start))
                // With bytes in it, so that no slash at the end brings the path back into reach.
                if ends.count > depth, end != before { return done }
            }
            before = end
            index += 1
        }
        guard !isCutShort else { return done }
        if interpretation.contains(.dropsTrailingSlash) {
            while let last = ends.last, last == (ends.count > 1 ? ends[ends.count - 2] : 0) {
                ends.removeLast()
                done.insert(.dropsTrailingSlash)
            }
        }
        // A slash and nothing after it is the root.
        if ends.count == 1, ends[0] == 0 { ends.removeLast() }
        return done
    }
}
