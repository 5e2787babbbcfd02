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

/// The field lines after the last chunk (RFC 9112 §7.1.2), kept apart from the head's.
///
/// They never take part in a decision. ``bytes`` holds a copy of the section, and ``fields`` counts
/// from its start. Nothing is allocated when there are no trailers.
package struct TrailerSection: Sendable {
    package private(set) var bytes: [UInt8] = []
    package private(set) var fields = FieldSection()
    private var lineStart = 0
    private var isAfterReturn = false
    private let bytesMax: Int
    private let fieldsMax: Int
    private let nameBytesMax: Int

    init(limits: HeadLimits) {
        bytesMax = limits.trailerBytesMax
        fieldsMax = limits.trailerFieldsMax
        nameBytesMax = limits.fieldNameBytesMax
    }

    /// Reads a section that is whole: the field lines and the blank line.
    package init(whole section: [UInt8], limits: HeadLimits) throws(Malformed) {
        self.init(limits: limits)
        // Without a field nothing is stored.
        guard section != [ASCIIByte.carriageReturn, ASCIIByte.lineFeed] else { return }
        guard section.count - 2 <= bytesMax else { throw Malformed(.trailersTooLong, at: bytesMax) }
        bytes = section
        try readFields(at: section.count)
    }

    /// Whether there is no field that may be forwarded.
    package var isEmpty: Bool {
        fields.fields.allSatisfy { FieldKindSet.forbiddenInTrailers.contains($0.kind) }
    }

    /// Whether each line can be forwarded as it is, so that ``bytes`` are what goes on.
    package var isForwardedWhole: Bool {
        fields.fields.allSatisfy {
            $0.isCanonical && !FieldKindSet.forbiddenInTrailers.contains($0.kind)
        }
    }

    /// Takes bytes up to the end of the section; `true` when the end is here.
    mutating func take(_ source: Span<UInt8>, from position: inout Int) throws(Malformed) -> Bool {
        while position < source.count {
            let byte = source[position]
            guard isAfterReturn == (byte == ASCIIByte.lineFeed) else {
                throw Malformed(isAfterReturn ? .bareCarriageReturn : .bareLineFeed, at: position)
            }
            position += 1
            if byte == ASCIIByte.lineFeed {
                isAfterReturn = false
                let isEmptyLine = bytes.count == lineStart
                // Without a field nothing is stored.
                if isEmptyLine, bytes.isEmpty { return true }
                bytes.append(ASCIIByte.carriageReturn)
                bytes.append(ASCIIByte.lineFeed)
                lineStart = bytes.count
                guard isEmptyLine else { continue }
                try readFields(at: position)
                return true
            }
            if byte == ASCIIByte.carriageReturn {
                isAfterReturn = true
                continue
            }
            guard bytes.count < bytesMax else { throw Malformed(.trailersTooLong, at: position) }
            bytes.append(byte)
        }
        return false
    }

    private mutating func readFields(at position: Int) throws(Malformed) {
        let section = bytes
        do throws(Malformed) {
            try fields.read(
                section.span,
                from: 0,
                role: .trailer,
                fieldsMax: fieldsMax,
                nameBytesMax: nameBytesMax
            )
        } catch {
            throw error.reason == .fieldsTooMany ? Malformed(.trailersTooLong, at: position) : error
        }
    }
}
