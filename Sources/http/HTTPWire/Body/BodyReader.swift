/// Reads the content of one message with any framing, in any pieces.
///
/// This is the one place that counts content bytes: for streaming, holding and draining alike.
///
///     var position = head.upperBound
///     reading: while true {
///         switch try body.read(bytes, from: &position) {
///         case .content(let range): forward(bytes.extracting(range))
///         case .needMore: break reading      // everything up to the end of `bytes` was consumed
///         case .finished: break reading      // `position` is the first byte after the message
///         }
///     }
package struct BodyReader: Sendable {
    package enum Step: Equatable, Sendable {
        /// Bytes of the content, never empty.
        case content(Range<Int>)
        case needMore
        /// The message ends before `position`. Each further call returns it again.
        case finished
    }

    package let framing: BodyFraming
    /// Content bytes so far, without the transfer coding.
    package private(set) var contentCount: UInt64 = 0
    package private(set) var isFinished: Bool
    /// For `length`: bytes still to come.
    private var remaining: UInt64
    private var chunked: ChunkedDecoder

    package init(_ framing: BodyFraming, limits: HeadLimits) {
        self.framing = framing
        remaining = if case .length(let length) = framing { length } else { 0 }
        isFinished = framing == .none || framing == .length(0)
        chunked = ChunkedDecoder(limits: limits)
    }

    /// The trailer section, empty until the message is finished.
    package var trailers: TrailerSection { chunked.trailers }

    /// The number of content bytes that must still come; `nil` when unknown.
    package var expectedCount: UInt64? {
        switch framing {
        case .none: 0
        case .length: remaining
        case .chunked, .untilClose: isFinished ? 0 : nil
        }
    }

    /// Takes the next step.
    ///
    /// - `position`: in 0...bytes.count; advanced over what was consumed.
    /// Throws a fault of the chunked coding. The reader is invalid after it.
    package mutating func read(
        _ bytes: Span<UInt8>,
        from position: inout Int
    ) throws(Malformed) -> Step {
        if isFinished { return .finished }
        let range: Range<Int>
        switch framing {
        case .none: return .finished
        case .untilClose: range = position..<bytes.count
        case .length:
            let here = UInt64(bytes.count - position)
            // The smaller of both fits an index, as `here` does.
            range = position..<position + Int(min(here, remaining))
            remaining -= UInt64(range.count)
            isFinished = remaining == 0
        case .chunked:
            switch try chunked.read(bytes, from: &position) {
            case .content(let content): range = content
            case .needMore: return .needMore
            case .finished:
                isFinished = true
                return .finished
            }
        }
        guard !range.isEmpty else { return .needMore }
        position = range.upperBound
        // 64 bits count more bytes than can ever arrive.
        contentCount &+= UInt64(range.count)
        return .content(range)
    }

    /// The caller has taken all content of a message with a length.
    package mutating func finishLength() {
        contentCount &+= remaining
        remaining = 0
        isFinished = true
    }

    /// The sender closed its side.
    ///
    /// Throws `body-truncated` when the message had not ended (RFC 9112 §8).
    package mutating func close() throws(Malformed) {
        if framing == .untilClose { isFinished = true }
        guard isFinished else { throw Malformed(.bodyTruncated, at: 0) }
    }
}

/// The chunked transfer coding (RFC 9112 §7.1), byte by byte for its lines, by ranges for its
/// data.
///
///     chunked-body = *chunk last-chunk trailer-section CRLF
///     chunk        = 1*HEXDIG [ chunk-ext ] CRLF chunk-data CRLF
///     chunk-ext    = *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )
///
/// CRLF and nothing else, everywhere; RFC 9112 erratum 7633 leaves no leniency here. Extensions are
/// read by their grammar and dropped. A recipient that only searches for CR may take a quoted CRLF
/// for the line's end.
struct ChunkedDecoder: Sendable {
    private enum State {
        /// Before the first digit of a size. To `sizeDigits`.
        case size
        /// To `spaceBeforeSemicolon`, `spaceBeforeName`, `lineFeed`.
        case sizeDigits
        /// White space that must lead to `;`. To `spaceBeforeName`.
        case spaceBeforeSemicolon
        /// To `name`.
        case spaceBeforeName
        /// To `spaceAfterName`, `spaceBeforeValue`, `spaceBeforeName`, `lineFeed`.
        case name
        /// White space that must lead to `=` or `;`. To `spaceBeforeValue`, `spaceBeforeName`.
        case spaceAfterName
        /// To `value`, `quoted`.
        case spaceBeforeValue
        /// To `spaceBeforeSemicolon`, `spaceBeforeName`, `lineFeed`.
        case value
        /// To `quotedPair`, `afterQuoted`.
        case quoted
        /// To `quoted`.
        case quotedPair
        /// To `spaceBeforeSemicolon`, `spaceBeforeName`, `lineFeed`.
        case afterQuoted
        /// After the CR of a size line. To `data`, `trailers`.
        case lineFeed
        /// To `dataReturn`.
        case data
        /// To `dataLineFeed`.
        case dataReturn
        /// To `size`.
        case dataLineFeed
        /// To `finished`.
        case trailers
        case finished
    }

    private var state = State.size
    private var size: UInt64 = 0
    private var digits = 0
    private var extensionBytes = 0
    private let extensionBytesMax: Int
    private(set) var trailers: TrailerSection

    /// Leading zeros included: 16 digits express all values of 64 bits. More digits are sent to
    /// overflow a parser's counter.
    private static var digitsMax: Int { 16 }

    init(limits: HeadLimits) {
        extensionBytesMax = limits.chunkExtensionBytesMax
        trailers = TrailerSection(limits: limits)
    }

    mutating func read(
        _ bytes: Span<UInt8>,
        from position: inout Int
    ) throws(Malformed) -> BodyReader.Step {
        while position < bytes.count {
            switch state {
            case .data:
                let count = min(size, UInt64(bytes.count - position))
                // At most the number of bytes that are here, so an index.
                let range = position..<position + Int(count)
                size -= count
                position = range.upperBound
                if size == 0 { state = .dataReturn }
                return .content(range)
            case .dataReturn, .dataLineFeed:
                let isReturn = state == .dataReturn
                let expected = isReturn ? ASCIIByte.carriageReturn : ASCIIByte.lineFeed
                guard bytes[position] == expected else {
                    throw Malformed(.chunkDataEnd, at: position)
                }
                state = isReturn ? .dataLineFeed : .size
                position += 1
            case .trailers:
                guard try trailers.take(bytes, from: &position) else { return .needMore }
                state = .finished
            case .finished: return .finished
            case .size, .sizeDigits:
                try takeSize(bytes[position], at: position)
                position += 1
            case .lineFeed:
                try takeLineFeed(bytes[position], at: position)
                position += 1
            case .spaceBeforeSemicolon, .spaceBeforeName, .name, .spaceAfterName,
                .spaceBeforeValue, .value, .quoted, .quotedPair, .afterQuoted:
                try takeExtension(bytes[position], at: position)
                position += 1
            }
        }
        return state == .finished ? .finished : .needMore
    }

    @inline(__always)
    private mutating func takeSize(_ byte: UInt8, at position: Int) throws(Malformed) {
        if let digit = ASCIIByte.hexadecimal(byte) {
            digits += 1
            guard digits <= Self.digitsMax else {
                throw Malformed(.chunkSizeOverflow, at: position)
            }
            // Sixteen digits fill the word; the line's end checks the top bit.
            size = size &<< 4 | UInt64(digit)
            state = .sizeDigits
            return
        }
        guard digits > 0 else { throw fault(byte, at: position, otherwise: .chunkSizeSyntax) }
        try endOrExtend(byte, at: position)
    }

    /// After a size, a name or a value: the line's end, or another extension.
    private mutating func endOrExtend(_ byte: UInt8, at position: Int) throws(Malformed) {
        switch byte {
        case ASCIIByte.carriageReturn: state = .lineFeed
        case UInt8(ascii: ";"):
            try countExtension(at: position)
            state = .spaceBeforeName
        case ASCIIByte.space, ASCIIByte.tab:
            try countExtension(at: position)
            state = state == .name ? .spaceAfterName : .spaceBeforeSemicolon
        default: throw fault(byte, at: position, otherwise: .chunkExtensionSyntax)
        }
    }

    private mutating func countExtension(at position: Int) throws(Malformed) {
        extensionBytes += 1
        guard extensionBytes <= extensionBytesMax else {
            throw Malformed(.chunkExtensionsTooLong, at: position)
        }
    }

    private mutating func takeLineFeed(_ byte: UInt8, at position: Int) throws(Malformed) {
        guard byte == ASCIIByte.lineFeed else { throw Malformed(.bareCarriageReturn, at: position) }
        // 2⁶³ and more: see ContentLength.
        guard size <= ContentLength.max else { throw Malformed(.chunkSizeOverflow, at: position) }
        state = size == 0 ? .trailers : .data
        digits = 0
    }

    private func fault(
        _ byte: UInt8,
        at position: Int,
        otherwise reason: Malformed.Reason
    ) -> Malformed {
        Malformed(byte == ASCIIByte.lineFeed ? .bareLineFeed : reason, at: position)
    }
}

extension ChunkedDecoder {
    /// Takes a byte of the extensions.
    private mutating func takeExtension(_ byte: UInt8, at position: Int) throws(Malformed) {
        let isToken = ByteSet.token.contains(byte)
        let isBlank = ASCIIByte.isBlank(byte)
        switch state {
        case .spaceBeforeSemicolon where isBlank, .spaceBeforeName where isBlank,
            .spaceAfterName where isBlank, .spaceBeforeValue where isBlank:
            break
        case .spaceBeforeSemicolon where byte == UInt8(ascii: ";"),
            .spaceAfterName where byte == UInt8(ascii: ";"):
            state = .spaceBeforeName
        case .spaceBeforeName where isToken, .name where isToken: state = .name
        case .spaceAfterName where byte == UInt8(ascii: "="),
            .name where byte == UInt8(ascii: "="):
            state = .spaceBeforeValue
        case .spaceBeforeValue where isToken, .value where isToken: state = .value
        case .spaceBeforeValue where byte == UInt8(ascii: "\""): state = .quoted
        case .quoted where byte == UInt8(ascii: "\""): state = .afterQuoted
        case .quoted where byte == UInt8(ascii: "\\"): state = .quotedPair
        case .quoted where ByteSet.quotedText.contains(byte) || byte >= 0x80: break
        case .quotedPair where byte == ASCIIByte.tab || byte >= 0x20 && byte != 0x7F:
            state = .quoted
        case .name, .value, .afterQuoted: return try endOrExtend(byte, at: position)
        case .spaceBeforeSemicolon, .spaceBeforeName, .spaceAfterName, .spaceBeforeValue, .quoted,
            .quotedPair:
            throw fault(byte, at: position, otherwise: .chunkExtensionSyntax)
        case .size, .sizeDigits, .lineFeed, .data, .dataReturn, .dataLineFeed, .trailers,
            .finished:
            preconditionFailure("ChunkedDecoder: an extension byte outside of a size line")
        }
        try countExtension(at: position)
    }
}
