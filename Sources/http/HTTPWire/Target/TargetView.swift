/// The one view of a path: what rules match. What is forwarded are the bytes as received.
///
/// A view is the path's segments, split at each `/` as received and then percent-decoded, once and
/// completely: `/%61dmin` has the segment `admin`, as an origin sees it. What can't be viewed in
/// one way is recorded in ``findings`` and refused by ``refusal(allowing:)`` once the rule is
/// known. The query takes no part. Servers that read the path otherwise are the subject of
/// ``PathInterpretation``.
///
/// The view holds its own bytes, so it outlives the buffer; its storage is reusable.
package struct TargetView: Sendable {
    /// The decoded bytes of all segments, without slashes.
    package private(set) var bytes: [UInt8] = []
    package private(set) var findings: PathConstructs = []
    /// The end of each segment in ``bytes``.
    package private(set) var ends: [UInt32] = []
    /// The path as received, without its first slash; empty where no interpretation needs it.
    private(set) var raw: [UInt8] = []
    /// The path in the interpretation that was visited last.
    var spelled = SpelledPath()
    var arranged = ArrangedPath()
    var routed = RoutedPath()
    /// The first byte of the part between two separators of any kind.
    private var partStart = 0
    private var hasHighBytes = false

    package init() {}

    /// The number of segments. `/` has none, `/a` one, `/a/` two.
    package var segmentCount: Int { ends.count }

    /// Where a segment is in ``bytes``.
    ///
    /// `index`: in 0..<segmentCount.
    package func segment(_ index: Int) -> Range<Int> {
        (index == 0 ? 0 : Int(ends[index - 1]))..<Int(ends[index])
    }

    /// Whether a segment has exactly these bytes, case included.
    package func segment(_ index: Int, equals text: [UInt8]) -> Bool {
        let range = segment(index)
        guard range.count == text.count else { return false }
        for step in 0..<range.count where bytes[range.lowerBound + step] != text[step] {
            return false
        }
        return true
    }

    /// Why the path is refused although a rule allows some constructs; `nil` when it is not.
    ///
    /// Of several findings the one with the highest rank is reported: what is never allowed comes
    /// first.
    ///
    /// `allowed`: of ``PathConstructs/allowable``; others have no effect.
    package func refusal(allowing allowed: PathConstructs = []) -> Malformed.Reason? {
        let left = findings.subtracting(allowed.intersection(.allowable))
        if left.isSubset(of: .readingDependent) { return nil }
        if left.contains(.brokenEscape) { return .pathEscape }
        if left.contains(.encodedControl) { return .pathControl }
        if left.contains(.dotSegment) { return .pathDotSegment }
        if left.contains(.backslash) { return .pathBackslash }
        if left.contains(.encodedSlash) { return .pathEncodedSlash }
        if left.contains(.encodedBackslash) { return .pathEncodedBackslash }
        return .pathEncoding
    }
}

extension TargetView {
    package mutating func read(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
        read(bytes, head.path)
    }

    /// Views a path: bytes of a request target, from its first slash; empty stands for `/`.
    package mutating func read(_ source: Span<UInt8>, _ path: Range<Int>) {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        if !raw.isEmpty { raw.removeAll(keepingCapacity: true) }
        findings = []
        partStart = 0
        hasHighBytes = false
        guard path.count > 1 else { return }

        var index = path.lowerBound + 1
        let end = path.upperBound
        while index < end {
            let start = index
            while index < end, ByteSet.plainInPath.contains(source[index]) { index += 1 }
            if index > start { bytes.append(source, start..<index) }
            guard index < end else { break }
            let byte = source[index]
            index += 1
            switch byte {
            case UInt8(ascii: "/"): endSegment(isLast: false)
            case UInt8(ascii: "%"):
                guard index + 1 < end, let high = ASCIIByte.hexadecimal(source[index]),
                    let low = ASCIIByte.hexadecimal(source[index + 1])
                else {
                    findings.insert(.brokenEscape)
                    bytes.append(byte)
                    continue
                }
                index += 2
                findings.insert(.escape)
                append(decoded: high &<< 4 | low)
            case UInt8(ascii: "\\"):
                findings.insert(.backslash)
                appendSeparator(byte)
            case UInt8(ascii: ";"):
                findings.insert(.pathParameter)
                bytes.append(byte)
            default:
                // A request target has no other byte. Another kind of text is refused.
                if byte >= 0x80 { hasHighBytes = true } else { findings.insert(.encodedControl) }
                bytes.append(byte)
            }
        }
        endSegment(isLast: true)
        if hasHighBytes { checkEncoding() }
        if !findings.isDisjoint(with: [.escape, .pathParameter, .backslash]) {
            raw.append(source, path.lowerBound + 1..<end)
        }
    }

    /// Takes a byte that was percent-encoded.
    private mutating func append(decoded byte: UInt8) {
        switch byte {
        case UInt8(ascii: "/"), UInt8(ascii: "\\"):
            findings.insert(byte == UInt8(ascii: "/") ? .encodedSlash : .encodedBackslash)
            appendSeparator(byte)
            return
        case 0..<0x20, 0x7F: findings.insert(.encodedControl)
        case 0x80...: hasHighBytes = true
        case UInt8(ascii: ";"): findings.insert(.encodedParameter)
        default: break
        }
        bytes.append(byte)
    }

    /// Takes a slash or backslash that some servers split a path at.
    private mutating func appendSeparator(_ byte: UInt8) {
        endPart()
        bytes.append(byte)
        partStart = bytes.count
    }

    private mutating func endSegment(isLast: Bool) {
        endPart()
        let start = ends.last.map(Int.init) ?? 0
        if bytes.count == start { findings.insert(isLast ? .trailingSlash : .emptySegment) }
        // A request target has fewer bytes than 32 bits count.
        ends.append(UInt32(truncatingIfNeeded: bytes.count))
        partStart = bytes.count
    }

    /// Looks for `.` and `..`, alone or before a path parameter.
    private mutating func endPart() {
        var index = partStart
        while index < bytes.count, index - partStart < 3, bytes[index] == UInt8(ascii: ".") {
            index += 1
        }
        let dots = index - partStart
        guard dots == 1 || dots == 2 else { return }
        if index == bytes.count || bytes[index] == UInt8(ascii: ";") {
            findings.insert(.dotSegment)
        }
    }

    private mutating func checkEncoding() {
        let isValid: Bool
        do {
            _ = try UTF8Span(validating: bytes.span)
            isValid = true
        } catch {
            isValid = false
        }
        if !isValid { findings.insert(.invalidEncoding) }
    }
}
