/// Finds the end of a head in a buffer that grows, looking at each byte once.
///
/// Bytes that can never become a head are rejected at once: LF or CR alone, another control byte, a
/// start line that is none, a head that is too long. ``RequestHead`` and ``ResponseHead`` read the
/// contents of the lines.
///
/// A value of a few words, so that an idle connection keeps nothing else. For the next head, make a
/// new one.
package struct HeadScanner: Sendable {
    package enum Subject: Sendable {
        /// - isSecure: the connection has TLS.
        case request(isSecure: Bool)
        case response
    }

    package enum Outcome: Equatable, Sendable {
        /// The head is longer than these bytes.
        case needMore
        /// The bytes of the head, without empty lines before it, with its blank line.
        case complete(Range<Int>)
    }

    private let subject: Subject
    /// The first byte of the start line.
    private var start = 0
    /// The first byte that was not scanned.
    private var position = 0
    private var lineStart = 0
    /// The end of the start line, before its CRLF; 0 while it is not there.
    private var firstLineEnd = 0
    private var isFirstLineChecked = false

    /// The most empty lines that are skipped before a request line (RFC 9112 §2.2 ¶6).
    private static var emptyLinesMax: Int { 2 }

    package init(_ subject: Subject) { self.subject = subject }

    /// Whether a byte of a head was seen, empty lines aside.
    package var hasBegun: Bool { position > start }

    /// Scans the new bytes.
    ///
    /// `bytes`: the same bytes as in the last call, and more.
    package mutating func scan(
        _ bytes: Span<UInt8>,
        limits: HeadLimits
    ) throws(Malformed) -> Outcome {
        if firstLineEnd == 0, position == start {
            guard try skipEmptyLines(bytes) else { return .needMore }
        }
        while true {
            let end = ByteScan.control(in: bytes, from: position, to: bytes.count)
            position = end
            guard end < bytes.count else { return try wait(bytes, limits) }
            guard bytes[end] == ASCIIByte.carriageReturn else {
                throw ByteScan.lineFault(bytes, at: end)
            }
            guard end + 1 < bytes.count else { return try wait(bytes, limits) }
            guard bytes[end + 1] == ASCIIByte.lineFeed else {
                throw Malformed(.bareCarriageReturn, at: end)
            }
            position = end + 2
            guard position - start <= limits.headBytesMax else { throw tooLong(bytes, limits) }
            if firstLineEnd == 0 {
                firstLineEnd = end
            } else if end == lineStart {
                return .complete(start..<position)
            }
            lineStart = position
        }
    }

    /// Skips CRLFs before a request; `true` when a line begins.
    private mutating func skipEmptyLines(_ bytes: Span<UInt8>) throws(Malformed) -> Bool {
        while start < bytes.count, bytes[start] == ASCIIByte.carriageReturn {
            guard case .request = subject, start < Self.emptyLinesMax * 2 else {
                throw Malformed(.emptyLinesBeforeHead, at: start)
            }
            guard start + 1 < bytes.count else { return false }
            guard bytes[start + 1] == ASCIIByte.lineFeed else {
                throw Malformed(.bareCarriageReturn, at: start)
            }
            start += 2
            position = start
            lineStart = start
        }
        return start < bytes.count
    }

    /// All bytes are scanned. They must still be able to become a head.
    private mutating func wait(
        _ bytes: Span<UInt8>,
        _ limits: HeadLimits
    ) throws(Malformed) -> Outcome {
        guard bytes.count - start <= limits.headBytesMax else { throw tooLong(bytes, limits) }
        if firstLineEnd == 0 {
            try checkGrowingLine(bytes, limits)
        } else if !isFirstLineChecked {
            isFirstLineChecked = true
            switch subject {
            case .request(let isSecure):
                _ = try RequestLine(bytes, start..<firstLineEnd, isSecure: isSecure, limits: limits)
            case .response: _ = try StatusLine(bytes, start..<firstLineEnd)
            }
        }
        return .needMore
    }

    /// A request line without end: are its method and its target within their bounds?
    private func checkGrowingLine(_ bytes: Span<UInt8>, _ limits: HeadLimits) throws(Malformed) {
        guard case .request = subject else { return }
        var index = start
        let methodEnd = min(bytes.count, start + limits.methodBytesMax + 1)
        while index < methodEnd, ByteSet.token.contains(bytes[index]) { index += 1 }
        guard index < bytes.count else { return }
        guard index - start <= limits.methodBytesMax else {
            throw Malformed(.methodTooLong, at: index)
        }
        let isEnd = bytes[index] == ASCIIByte.space || bytes[index] == ASCIIByte.carriageReturn
        guard isEnd, index > start else { throw Malformed(.methodSyntax, at: index) }
        // " HTTP/1.1" and CR may be there already.
        guard bytes.count - index <= limits.targetBytesMax + 11 else {
            throw Malformed(.targetTooLong, at: index)
        }
    }

    /// The head is too long, or, if its first line already is, the target.
    private func tooLong(_ bytes: Span<UInt8>, _ limits: HeadLimits) -> Malformed {
        if case .request = subject {
            let lineEnd = firstLineEnd == 0 ? position : firstLineEnd
            do throws(Malformed) {
                // The line may be cut short; only the bounds of method and target matter here.
                _ = try RequestLine(
                    bytes,
                    start..<min(lineEnd, bytes.count),
                    isSecure: true,
                    limits: limits
                )
            } catch {
                if error.reason == .targetTooLong || error.reason == .methodTooLong { return error }
            }
        }
        return Malformed(.headTooLong, at: start + limits.headBytesMax)
    }
}

extension HeadScanner {
    /// Finds the next head, and gets ready for the one after it.
    ///
    /// - bytes: the bytes that the peer has sent and that were not read, from `start` on.
    /// - start: where the head begins; afterwards, where it ends.
    /// - rest: the bytes that are kept until more come, when the head is longer than `bytes`.
    /// - Returns: the head's bytes in `bytes`; `nil` when more has to come.
    package mutating func next(
        in bytes: Span<UInt8>,
        from start: inout Int,
        limits: HeadLimits,
        keeping rest: inout [UInt8]
    ) throws(Malformed) -> Range<Int>? {
        let unread = bytes.extracting(droppingFirst: start)
        guard case .complete(let range) = try scan(unread, limits: limits) else {
            if start > 0 || rest.isEmpty {
                // The pointer lives for the call only, and the copy is made inside it.
                rest = unsafe unread.withUnsafeBufferPointer { unsafe Array($0) }
            }
            return nil
        }
        self = HeadScanner(subject)
        let found = (start + range.lowerBound)..<(start + range.upperBound)
        start = found.upperBound
        return found
    }
}
