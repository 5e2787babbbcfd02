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
        for index in fields.fields.indices
        where !FieldKindSet.forbiddenInTrailers.contains(fields.fields[index].kind) {
            return false
        }
        return true
    }

    /// Whether each line can be forwarded as it is, so that ``bytes`` are what goes on.
    package var isForwardedWhole: Bool {
        for index in fields.fields.indices {
            let field = fields.fields[index]
            guard field.isCanonical, !FieldKindSet.forbiddenInTrailers.contains(field.kind) else {
                return false
            }
        }
        return true
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
