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

/// The segments that a router or a site leaves of a path: the last step of an interpretation.
struct RoutedPath: Sendable {
    /// The result for the number of a variant.
    enum Variant: Equatable {
        /// There is no variant with this number or a higher one.
        case end
        /// The variant is equal to one with a lower number.
        case repeated
        /// These steps had an effect; the others leave the path as it is.
        case made(PathInterpretation)
    }

    /// The bytes of all segments.
    private(set) var bytes: [UInt8] = []
    /// The end of each segment in ``bytes``.
    private(set) var ends: [UInt32] = []

    /// Makes a variant of a path. There are two for each script that may be the front controller:
    /// without its name, and without all up to it. There are two for each way to end: by a format,
    /// or without an index.
    ///
    /// A pattern keeps what is before the script: as `/orders`, a rule for `/blog/index.php/orders`
    /// would dispute the path of another application.
    ///
    /// `interpretation`: of ``PathInterpretation/routing``; the rest has no effect, but for slashes
    /// at the end. `rest`: `nil` for a path, and for a pattern whether more segments may follow.
    mutating func read(
        _ source: Span<UInt8>,
        _ sourceEnds: Span<UInt32>,
        in interpretation: PathInterpretation,
        variant: Int,
        rest: Bool? = nil
    ) -> Variant {
        let endings = interpretation.isDisjoint(with: [.dropsIndex, .dropsFormat]) ? 1 : 2
        var done: PathInterpretation = []
        var left = 0..<0
        if interpretation.contains(.dropsScript) {
            let script = Self.script(variant / endings / 2, in: source, ends: sourceEnds)
            if script >= 0 {
                let dropsFolder = variant / endings % 2 == 1
                if dropsFolder, script == 0 || rest != nil { return .repeated }
                left = (dropsFolder ? 0 : script)..<script + 1
                done.insert(.dropsScript)
            }
        }
        if left.isEmpty, variant >= endings { return .end }
        copy(source, sourceEnds, without: left)
        if rest != true, interpretation.contains(.dropsIndex),
            dropIndex(interpretation, variant % 2 == 1)
        {
            done.insert(.dropsIndex)
        } else if rest != true, interpretation.contains(.dropsFormat),
            dropFormat(isFirst: variant % 2 == 1, isPattern: rest != nil)
        {
            done.insert(.dropsFormat)
        } else if endings == 2, variant % 2 == 1 {
            return .repeated
        }
        return .made(done)
    }

    /// The segment that is the front controller in a variant, or -1.
    ///
    /// Never the last one, so that a pattern for all that one script routes (`/index.php/**`) does
    /// not become one for everything.
    private static func script(_ number: Int, in bytes: Span<UInt8>, ends: Span<UInt32>) -> Int {
        var left = number
        var start = 0
        for index in 0..<max(0, ends.count - 1) {
            let end = Int(ends[index])
            defer { start = end }
            guard ScriptName.isScript(bytes, start..<end) else { continue }
            if left == 0 { return index }
            left -= 1
        }
        return -1
    }

    private mutating func copy(
        _ source: Span<UInt8>,
        _ sourceEnds: Span<UInt32>,
        without left: Range<Int>
    ) {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        var start = 0
        for index in 0..<sourceEnds.count {
            let end = Int(sourceEnds[index])
            defer { start = end }
            guard !left.contains(index) else { continue }
            bytes.append(source, start..<end)
            ends.append(UInt32(truncatingIfNeeded: bytes.count))
        }
        // A slash and nothing after it is the root.
        if ends.count == 1, ends[0] == 0 { ends.removeLast() }
    }

    private var last: Range<Int> {
        let end = Int(ends.last ?? 0)
        return (ends.count > 1 ? Int(ends[ends.count - 2]) : 0)..<end
    }

    /// Leaves out the index at the end, and the slash before it too, unless that is to stay.
    private mutating func dropIndex(_ interpretation: PathInterpretation, _ keepsSlash: Bool)
        -> Bool
    {
        guard !ends.isEmpty, IndexName.isIndex(bytes.span, last) else { return false }
        let start = UInt32(truncatingIfNeeded: last.lowerBound)
        ends.removeLast()
        if interpretation.contains(.dropsTrailingSlash) {
            while !ends.isEmpty, last.isEmpty { ends.removeLast() }
        } else if keepsSlash, !ends.isEmpty {
            ends.append(start)
        }
        return true
    }

    /// Ends the last segment at its last dot, or at its first one.
    ///
    /// A pattern keeps a script's extension: `/pay.css` is not `/pay.php`.
    private mutating func dropFormat(isFirst: Bool, isPattern: Bool) -> Bool {
        let last = last
        if isPattern, ScriptName.isScript(bytes.span, last) { return false }
        var found: Int?
        for index in last.dropFirst() where bytes[index] == UInt8(ascii: ".") {
            found = index
            if isFirst { break }
        }
        guard let found else { return false }
        ends[ends.count - 1] = UInt32(truncatingIfNeeded: found)
        return true
    }
}
