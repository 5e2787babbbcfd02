/// Appends heads to a reusable array: begin, own fields, end.
///
///     HeadWriter.beginRequest(head, bytes, options: options, into: &out)
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
        // The pointer lives for the call only, and the copy is made inside it.
        value.withUTF8Buffer { unsafe out.append(line: name, $0) }
    }

    /// Appends a field line with a value of bytes that hold neither CR nor LF.
    package static func field(_ name: StaticString, _ value: [UInt8], into out: inout [UInt8]) {
        // The pointer lives for the call only, and the copy is made inside it.
        unsafe value.withUnsafeBufferPointer { unsafe out.append(line: name, $0) }
    }

    /// Appends a field line with a value that was read from a head.
    package static func field(
        _ name: StaticString,
        _ bytes: Span<UInt8>,
        at value: Range<Int>,
        into out: inout [UInt8]
    ) {
        // The pointer lives for the call only, and the copy is made inside it.
        unsafe bytes.extracting(value).withUnsafeBufferPointer { unsafe out.append(line: name, $0) }
    }

    /// Appends a field line with a number.
    package static func field(_ name: StaticString, _ value: UInt64, into out: inout [UInt8]) {
        let count = name.utf8CodeUnitCount + ASCIIByte.decimalDigitsMax + 4
        out.append(addingCapacity: count) { line in
            line.append(name)
            line.append(UInt8(ascii: ":"))
            line.append(ASCIIByte.space)
            line.append(decimal: value)
            line.appendLineEnd()
        }
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
    private static func via(_ version: HTTPVersion, isHTTP2: Bool, into out: inout [UInt8]) {
        let received: StaticString =
            isHTTP2 ? "Via: 2.0 " : version == .http11 ? "Via: 1.1 " : "Via: 1.0 "
        let count = received.utf8CodeUnitCount + pseudonym.utf8CodeUnitCount + 2
        out.append(addingCapacity: count) { line in
            line.append(received)
            line.append(pseudonym)
            line.appendLineEnd()
        }
    }
}

extension HeadWriter {
    /// Fields that are named one by one, beside the kinds that end here.
    package struct NamedFields: Sendable {
        /// They stay although their kind ends here.
        package var keeping = FieldNameSet()
        /// Their twins end here, since CGI can't tell the two apart.
        package var guarding = FieldNameSet()

        package init() {}
    }

    /// How a request is forwarded.
    package struct RequestOptions: Sendable {
        /// The kinds of the client's fields that end here; begin with
        /// ``FieldKindSet/neverToOrigin``. Framing fields and Connection's nominations end here in
        /// any case.
        package var dropping: FieldKindSet = .neverToOrigin
        package var named = NamedFields()
        /// How the content goes to the origin; usually the head's own framing.
        package var framing: BodyFraming = .none
        /// Whether the origin learns that the connection ends with this request. Wins over
        /// `forwardsUpgrade`.
        package var closes = false
        /// Whether the origin gets the client's Upgrade.
        package var forwardsUpgrade = false
        /// Whether the origin learns that trailers are taken.
        package var acceptsTrailers = false

        /// The client spoke HTTP/2, and Via says so.
        package var cameByHTTP2 = false

        package init() {}
    }

    /// Appends request line and fields; own fields and ``endHead(into:)`` follow.
    ///
    /// The target is forwarded as received, in origin-form (RFC 9110 §7.7). An absolute-form
    /// OPTIONS without path becomes `*` (RFC 9112 §3.2.4). The version is always 1.1. Host is
    /// forwarded as received, since it may be signed. It names the host of an absolute-form target
    /// (RFC 9112 §3.2.2), or the head would have been rejected.
    package static func beginRequest(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        options: RequestOptions,
        into out: inout [UInt8]
    ) {
        var dropping = options.dropping.union(.hopByHop)
        var startLine = 0..<head.firstFieldStart
        if head.version != .http11 || head.form == .absolute {
            startLine = startLine.upperBound..<startLine.upperBound
            requestLine(head, bytes, into: &out)
        }
        if head.form == .absolute, !head.fields.contains(.host), !options.dropping.contains(.host) {
            // For an HTTP/1.0 client.
            field("Host", bytes, at: head.authority, into: &out)
        }
        let hops = head.maxForwards(bytes)
        if hops != nil { dropping.insert(FieldKindSet(.maxForwards)) }
        head.fields.appendForwarded(
            bytes,
            after: startLine,
            dropping: dropping,
            named: options.named,
            to: &out
        )
        // RFC 9110 §7.6.2. Zero never comes here: such a request is answered by the gateway.
        if let hops { field("Max-Forwards", hops > 0 ? hops - 1 : 0, into: &out) }
        framing(options.framing, into: &out)
        connection(head, bytes, options: options, into: &out)
        via(head.version, isHTTP2: options.cameByHTTP2, into: &out)
    }

    private static func requestLine(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        into out: inout [UInt8]
    ) {
        out.append(bytes, head.methodRange)
        out.append(ASCIIByte.space)
        target(head, bytes, into: &out)
        out.append(" HTTP/1.1\r\n")
    }

    /// Appends the target that the origin gets: in origin-form, or `*` (RFC 9112 §3.2).
    package static func target(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        into out: inout [UInt8]
    ) {
        guard !head.isForServer else { return out.append(UInt8(ascii: "*")) }
        if head.path.isEmpty { out.append(UInt8(ascii: "/")) }
        out.append(bytes, head.pathAndQuery)
    }

    private static func connection(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        options: RequestOptions,
        into out: inout [UInt8]
    ) {
        let upgrade = options.forwardsUpgrade && !options.closes ? head.upgrade : nil
        if options.closes {
            out.append(
                options.acceptsTrailers ? "Connection: close, TE\r\n" : "Connection: close\r\n"
            )
        } else if let upgrade {
            field("Upgrade", bytes, at: upgrade, into: &out)
            out.append(
                options.acceptsTrailers
                    ? "Connection: upgrade, TE\r\n" : "Connection: upgrade\r\n"
            )
        } else if options.acceptsTrailers {
            out.append("Connection: TE\r\n")
        }
        if options.acceptsTrailers { out.append("TE: trailers\r\n") }
    }
}

extension FieldSection {
    /// Appends all fields that stay, and the start line before them.
    ///
    /// Neighbouring lines that can be copied as they are, are copied at once.
    ///
    /// - startLine: what is copied of the start line, up to the first field line; empty for none.
    ///
    /// Inlined: a response names no field, and pays for none of the questions about names then.
    @inline(__always)
    func appendForwarded(
        _ bytes: Span<UInt8>,
        after startLine: Range<Int>,
        dropping kinds: FieldKindSet,
        named: HeadWriter.NamedFields = HeadWriter.NamedFields(),
        to out: inout [UInt8]
    ) {
        let guards = !named.guarding.isEmpty
        var runStart = startLine.lowerBound
        var runEnd = startLine.upperBound
        for index in fields.indices {
            let field = fields[index]
            if field.isNominated || guards && named.guarding.containsTwin(bytes, of: field.name)
                || kinds.contains(field.kind) && !named.keeping.contains(bytes, field.name)
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

extension RequestHead {
    /// Whether the request is for the server and no resource of it: `OPTIONS *`, which is also what
    /// `OPTIONS http://host` without path and query means (RFC 9112 §3.2.4).
    package var isForServer: Bool {
        form == .asterisk
            || form == .absolute && method == .options && path.isEmpty && query.isEmpty
    }
}
