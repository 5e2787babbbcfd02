/// The field lines of a head or trailer section, in order, and their statements about the
/// connection.
///
/// Storage is kept from one message to the next. Repeated lines stay apart, in their order
/// (RFC 9110 §5.3).
package struct FieldSection: Sendable {
    /// Which message the fields belong to.
    enum Role {
        case request, response, trailer
    }

    package private(set) var fields: [Field] = []
    /// The kinds that occur.
    package private(set) var kinds: FieldKindSet = []
    /// The kinds that occur more than once.
    package private(set) var repeatedKinds: FieldKindSet = []
    /// What the Connection lines say.
    package private(set) var connection = ConnectionOptions()

    package init() {}

    /// The most options of Connection that name fields; each is compared with each field.
    private static let nominationsMax = 16

    @inline(__always)
    package func contains(_ kind: FieldKind) -> Bool { kinds.contains(kind) }

    package func first(_ kind: FieldKind) -> Field? {
        guard kinds.contains(kind) else { return nil }
        for index in fields.indices where fields[index].kind == kind { return fields[index] }
        return nil
    }

    /// The field of a kind, when it occurs once only.
    package func only(_ kind: FieldKind) -> Field? {
        repeatedKinds.contains(kind) ? nil : first(kind)
    }

    /// The value of the first field of a name, given in lower case. For names that the gateway does
    /// not know; ``first(_:)`` is quicker for the others.
    package func value(of name: StaticString, _ bytes: Span<UInt8>) -> Range<Int>? {
        for field in fields where ByteScan.equal(bytes, field.name, to: name) { return field.value }
        return nil
    }

    /// Whether trailers may follow. Connection's options may name trailer fields too (RFC 9110
    /// §7.6.1), and trailers come when the head is gone. So if an option names a field, all
    /// trailers end here.
    package var mayHaveTrailers: Bool { connection.nominations == 0 }

    mutating func removeAll() {
        // A head that is read forgets the last one first: the fields are removed already.
        if !fields.isEmpty { fields.removeAll(keepingCapacity: true) }
        kinds = []
        repeatedKinds = []
        connection = ConnectionOptions()
    }

    /// Reads field lines up to and including the empty line, which must be the end of `bytes`.
    ///
    /// Errors come in the order of the bytes, then of the Connection options.
    ///
    /// - `start`: the first byte of the first line, in 0...bytes.count.
    mutating func read(
        _ bytes: Span<UInt8>,
        from start: Int,
        role: Role,
        fieldsMax: Int,
        nameBytesMax: Int
    ) throws(Malformed) {
        removeAll()
        var index = start
        while true {
            guard index < bytes.count else { throw Malformed(.bodyTruncated, at: index) }
            if bytes[index] == ASCIIByte.carriageReturn {
                try endOfLine(bytes, at: index)
                guard index + 2 == bytes.count else {
                    throw Malformed(.fieldNameSyntax, at: index + 2)
                }
                break
            }
            guard fields.count < fieldsMax else { throw Malformed(.fieldsTooMany, at: index) }
            index = try readLine(bytes, from: index, role: role, nameBytesMax: nameBytesMax)
        }
        if kinds.contains(.connection) { try readConnection(bytes, role) }
    }

    /// Reads one line and returns the start of the next.
    @inline(__always)
    private mutating func readLine(
        _ bytes: Span<UInt8>,
        from start: Int,
        role: Role,
        nameBytesMax: Int
    ) throws(Malformed) -> Int {
        let end = bytes.count
        let nameEnd: Int
        let colon: Int
        let kind: FieldKind
        if let name = FoldedName(lineFrom: start, in: bytes), name.count <= nameBytesMax {
            nameEnd = start + name.count
            colon = nameEnd
            kind = KnownFieldNames.kind(name)
        } else {
            (nameEnd, colon) = try slowName(
                bytes,
                from: start,
                role: role,
                nameBytesMax: nameBytesMax
            )
            kind = KnownFieldNames.kind(bytes, start..<nameEnd)
            if kind == .underscored || kind == .disguised || colon != nameEnd {
                try checkDisguise(bytes, start..<nameEnd, of: kind, colon: colon)
            }
        }
        var valueStart = colon + 1
        while valueStart < end, ASCIIByte.isBlank(bytes[valueStart]) { valueStart += 1 }
        let lineEnd = ByteScan.control(in: bytes, from: valueStart, to: end)
        try endOfLine(bytes, at: lineEnd)
        var valueEnd = lineEnd
        while valueEnd > valueStart, ASCIIByte.isBlank(bytes[valueEnd - 1]) { valueEnd -= 1 }

        let isCanonical =
            colon == nameEnd && valueStart == colon + 2 && valueEnd == lineEnd
            && bytes[colon + 1] == ASCIIByte.space
        fields.append(
            Field(
                name: start..<nameEnd,
                value: valueStart..<valueEnd,
                kind: kind,
                isCanonical: isCanonical
            )
        )
        let bit = FieldKindSet(kind)
        repeatedKinds.formUnion(kinds.intersection(bit))
        kinds.formUnion(bit)
        return lineEnd + 2
    }

    /// The end of a name and the place of the colon, byte by byte.
    @inline(never)
    private func slowName(
        _ bytes: Span<UInt8>,
        from start: Int,
        role: Role,
        nameBytesMax: Int
    ) throws(Malformed) -> (nameEnd: Int, colon: Int) {
        let end = bytes.count
        var nameEnd = start
        while nameEnd < end, ByteSet.token.contains(bytes[nameEnd]) { nameEnd += 1 }
        guard nameEnd > start, nameEnd - start <= nameBytesMax else {
            throw nameFault(bytes, from: start, to: nameEnd)
        }
        var colon = nameEnd
        if role == .response {
            // RFC 9112 §5.1 ¶2: white space before the colon of a response field is removed.
            while colon < end, ASCIIByte.isBlank(bytes[colon]) { colon += 1 }
        }
        guard colon < end, bytes[colon] == UInt8(ascii: ":") else {
            throw colonFault(bytes, nameEnd)
        }
        return (nameEnd, colon)
    }

    /// Checks that a line ends at `index`: CR LF, and no other byte that could stand for an end.
    @inline(__always)
    private func endOfLine(_ bytes: Span<UInt8>, at index: Int) throws(Malformed) {
        guard index + 1 < bytes.count, bytes[index] == ASCIIByte.carriageReturn,
            bytes[index + 1] == ASCIIByte.lineFeed
        else { throw ByteScan.lineFault(bytes, at: index) }
    }

    /// A framing field in a spelling that some recipients take for the real one.
    @inline(never)
    private func checkDisguise(
        _ bytes: Span<UInt8>,
        _ name: Range<Int>,
        of kind: FieldKind,
        colon: Int
    ) throws(Malformed) {
        if kind == .underscored || kind == .disguised {
            let twin = KnownFieldNames.kindOfTwin(bytes, name)
            guard twin != .contentLength, twin != .transferEncoding else {
                throw Malformed(.underscoreTwin, at: name.lowerBound)
            }
        } else if kind == .contentLength || kind == .transferEncoding {
            // Clients may read `Content-Length : 5` of an origin in two ways.
            throw Malformed(.fieldNameSyntax, at: colon)
        }
    }

    @inline(never)
    private func nameFault(_ bytes: Span<UInt8>, from start: Int, to nameEnd: Int) -> Malformed {
        guard nameEnd == start else { return Malformed(.fieldNameTooLong, at: nameEnd) }
        guard start < bytes.count else { return Malformed(.bodyTruncated, at: start) }
        if ASCIIByte.isBlank(bytes[start]) { return Malformed(.obsoleteFold, at: start) }
        return Malformed(.fieldNameSyntax, at: start)
    }

    @inline(never)
    private func colonFault(_ bytes: Span<UInt8>, _ nameEnd: Int) -> Malformed {
        guard nameEnd < bytes.count else { return Malformed(.bodyTruncated, at: nameEnd) }
        let isLineEnd = bytes[nameEnd] == ASCIIByte.carriageReturn
        return Malformed(isLineEnd ? .colonMissing : .fieldNameSyntax, at: nameEnd)
    }
}

extension FieldSection {
    /// Reads all Connection lines before any field is forwarded (RFC 9110 §7.6.1), and marks the
    /// fields that they name.
    private mutating func readConnection(_ bytes: Span<UInt8>, _ role: Role) throws(Malformed) {
        for index in fields.indices where fields[index].kind == .connection {
            var list = TokenList(fields[index].value)
            while let option = try list.next(bytes) {
                if !connection.insert(bytes, option) { try nominate(bytes, option, role: role) }
            }
        }
    }

    /// Marks the fields of a name that Connection lists.
    ///
    /// A request must not name a field that is meant for more than one hop (RFC 9110 §7.6.1 ¶9):
    /// no honest client does. In a response such an option is ignored, since the origin is trusted,
    /// and the field goes to the client.
    private mutating func nominate(
        _ bytes: Span<UInt8>,
        _ option: Range<Int>,
        role: Role
    ) throws(Malformed) {
        let kind = KnownFieldNames.kind(bytes, option)
        guard !FieldKindSet.endToEnd.contains(kind) else {
            guard role != .request else {
                throw Malformed(.connectionNomination, at: option.lowerBound)
            }
            return
        }
        // Never forwarded anyway.
        guard !FieldKindSet.hopByHop.contains(kind) else { return }
        connection.nominations += 1
        guard connection.nominations <= Self.nominationsMax else {
            throw Malformed(.connectionOption, at: option.lowerBound)
        }
        for index in fields.indices
        where fields[index].kind == kind
            && ByteScan.equal(bytes, fields[index].name, to: bytes, at: option)
        {
            fields[index].isNominated = true
        }
    }
}

/// One field line: where its name and its value are, counted from the start of the head.
package struct Field: Sendable {
    private let nameStart: UInt32
    private let valueStart: UInt32
    private let valueCount: UInt32
    private let nameCount: UInt16
    package let kind: FieldKind
    private var flags: UInt8

    /// Bytes of the name, a token.
    @inline(__always)
    package var name: Range<Int> { Int(nameStart)..<Int(nameStart) &+ Int(nameCount) }

    /// Whether CGI makes the same variable of the name and of another one that the gateway knows.
    func isTwinOfKnown(_ bytes: Span<UInt8>) -> Bool {
        switch kind {
        case .disguised: true
        case .underscored: KnownFieldNames.kindOfTwin(bytes, name) != .other
        default: false
        }
    }

    /// Bytes of the value without the white space around it; may be empty.
    @inline(__always)
    package var value: Range<Int> { Int(valueStart)..<Int(valueStart) &+ Int(valueCount) }

    /// Whether the line is exactly `name: value CRLF` and can be copied as it is.
    @inline(__always)
    var isCanonical: Bool { flags & 1 != 0 }

    /// Whether Connection names the field, so that the field ends here (RFC 9110 §7.6.1).
    @inline(__always)
    package internal(set) var isNominated: Bool {
        get { flags & 2 != 0 }
        set { flags = newValue ? flags | 2 : flags & ~2 }
    }

    /// The whole line with its CRLF, if it is canonical.
    @inline(__always)
    var line: Range<Int> { Int(nameStart)..<Int(valueStart) &+ Int(valueCount) &+ 2 }

    /// - `name` and `value`: within a head, whose length fits 32 bits; a name's length fits 16.
    @inline(__always)
    init(name: Range<Int>, value: Range<Int>, kind: FieldKind, isCanonical: Bool) {
        nameStart = UInt32(truncatingIfNeeded: name.lowerBound)
        nameCount = UInt16(truncatingIfNeeded: name.count)
        valueStart = UInt32(truncatingIfNeeded: value.lowerBound)
        valueCount = UInt32(truncatingIfNeeded: value.count)
        self.kind = kind
        flags = isCanonical ? 1 : 0
    }
}
