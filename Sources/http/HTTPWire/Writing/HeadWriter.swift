/// Appends heads to a reusable array: begin, own fields, end.
///
///     HeadWriter.beginRequest(head, bytes, options, into: &out)
///     HeadWriter.field("App-Attest-Verdict", "pass", into: &out)
///     HeadWriter.endHead(into: &out)
///
/// The gateway's fields come after the client's fields were removed, so no Connection option can
/// strip them (RFC 9110 §7.6.1).
package enum HeadWriter {
    /// The name by which this gateway calls itself in Via (RFC 9110 §7.6.3).
    package static let pseudonym: StaticString = "portcullis"

    // MARK: Fields

    /// Appends a field line. Name and value are the gateway's own or were read from a head, so they
    /// hold neither CR nor LF.
    package static func field(
        _ name: StaticString,
        _ value: StaticString,
        into out: inout [UInt8]
    ) {
        out.append(name)
        out.append(": ")
        out.append(value)
        out.appendLineEnd()
    }

    /// Appends a field line with a value of bytes that hold neither CR nor LF.
    package static func field(_ name: StaticString, _ value: [UInt8], into out: inout [UInt8]) {
        out.append(name)
        out.append(": ")
        out.append(contentsOf: value)
        out.appendLineEnd()
    }

    /// Appends a field line with a value that was read from a head.
    package static func field(
        _ name: StaticString,
        _ bytes: Span<UInt8>,
        _ value: Range<Int>,
        into out: inout [UInt8]
    ) {
        out.append(name)
        out.append(": ")
        out.append(bytes, value)
        out.appendLineEnd()
    }

    /// Appends a field line with a number.
    package static func field(_ name: StaticString, _ value: UInt64, into out: inout [UInt8]) {
        out.append(name)
        out.append(": ")
        out.append(decimal: value)
        out.appendLineEnd()
    }

    /// Appends a field line from configuration or computed text.
    ///
    /// Bytes that no field value may hold (control bytes but HTAB) become spaces, so that no text
    /// can add a line.
    package static func field(text name: [UInt8], _ value: [UInt8], into out: inout [UInt8]) {
        for byte in name where ByteSet.token.contains(byte) { out.append(byte) }
        out.append(": ")
        append(text: value, to: &out)
        out.appendLineEnd()
    }

    /// Appends a field line with a value of configured or computed text, without a name to check.
    package static func field(_ name: StaticString, text value: String, into out: inout [UInt8]) {
        out.append(name)
        out.append(": ")
        append(text: value.utf8, to: &out)
        out.appendLineEnd()
    }

    /// Copies the text as a whole, then searches it: most values need no change.
    private static func append(text: some Collection<UInt8>, to out: inout [UInt8]) {
        let start = out.count
        out.append(contentsOf: text)
        for index in start..<out.count {
            let byte = out[index]
            let isControl = byte < 0x20 && byte != ASCIIByte.tab || byte == 0x7F
            if isControl { out[index] = ASCIIByte.space }
        }
    }

    /// Appends the blank line.
    package static func endHead(into out: inout [UInt8]) { out.appendLineEnd() }

    // MARK: Parts of heads

    /// Appends the field that tells how the content is delimited, if one is needed.
    package static func framing(_ framing: BodyFraming, into out: inout [UInt8]) {
        switch framing {
        case .none, .untilClose: break
        case .length(let length): field("Content-Length", length, into: &out)
        case .chunked: out.append("Transfer-Encoding: chunked\r\n")
        }
    }

    /// Appends Via with the version in which the message came.
    static func via(_ version: HTTPVersion, isHTTP2: Bool = false, into out: inout [UInt8]) {
        out.append(isHTTP2 ? "Via: 2.0 " : version == .http11 ? "Via: 1.1 " : "Via: 1.0 ")
        out.append(pseudonym)
        out.appendLineEnd()
    }

    /// Appends the start line's bytes up to `start`, if they are to be copied, and all fields that
    /// stay.
    ///
    /// Neighbouring lines that can be copied as they are, are copied at once.
    ///
    /// `start`: where the copying begins; the first field line or the start line before it.
    static func copy(
        _ section: FieldSection,
        _ bytes: Span<UInt8>,
        from start: Int,
        firstLine: Int,
        dropping kinds: FieldKindSet,
        keeping: FieldNameSet = FieldNameSet(),
        guarding: FieldNameSet = FieldNameSet(),
        into out: inout [UInt8]
    ) {
        var runStart = start
        var runEnd = firstLine
        for index in section.fields.indices {
            let field = section.fields[index]
            if field.isNominated || guarding.containsTwin(bytes, of: field.name)
                || kinds.contains(field.kind) && !keeping.contains(bytes, field.name)
            {
                continue
            }
            if field.isCanonical {
                let line = field.line
                if line.lowerBound == runEnd {
                    runEnd = line.upperBound
                    continue
                }
                out.append(bytes, runStart..<runEnd)
                runStart = line.lowerBound
                runEnd = line.upperBound
            } else {
                out.append(bytes, runStart..<runEnd)
                runStart = runEnd
                out.append(bytes, field.name)
                out.append(": ")
                out.append(bytes, field.value)
                out.appendLineEnd()
            }
        }
        out.append(bytes, runStart..<runEnd)
    }
}
