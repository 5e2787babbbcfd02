/// A request head, read strictly, as ranges into its bytes.
///
/// The storage is reusable: ``read(_:isSecure:limits:)`` forgets the last head and keeps the
/// memory. All ranges count from the first byte of the span that was read, and mean nothing
/// without it.
package struct RequestHead: ~Copyable, Sendable {
    private var line = RequestLine()
    /// The field lines in their order.
    package private(set) var fields = FieldSection()
    /// How the content is delimited.
    package private(set) var framing: BodyFraming = .none
    /// The authority that was asked for: of an absolute-form target, or else Host; empty when an
    /// HTTP/1.0 client sent neither.
    package private(set) var authority: Range<Int> = 0..<0
    /// The client waits for `100 Continue` before it sends its content (RFC 9110 §10.1.1).
    package private(set) var expectsContinue = false
    /// The number of bytes of the head.
    package private(set) var count = 0
    /// The first byte after the request line.
    private(set) var firstFieldStart = 0

    package init() {}

    package var method: Method { line.method }
    package var methodRange: Range<Int> { line.methodRange }
    package var version: HTTPVersion { line.version }
    /// The target as received, in whatever form.
    package var target: Range<Int> { line.target }
    package var form: TargetForm { line.form }
    /// The path as received, from its first slash; empty for `*` and when an absolute-form target
    /// has none, which means `/`.
    package var path: Range<Int> { line.path }
    /// The query as received with its `?`; empty when there is none.
    package var query: Range<Int> { line.query }
    /// Path and query as received. Origin-form, save for a leading `/` when ``path`` is empty.
    package var pathAndQuery: Range<Int> { line.path.lowerBound..<line.query.upperBound }

    /// The host of ``authority`` without port.
    package func host(_ octets: Span<UInt8>) -> Range<Int> {
        Authority(octets, authority)?.host ?? authority
    }

    /// Whether the connection may serve another request after this one (RFC 9112 §9.3).
    package var isPersistent: Bool {
        fields.connection.isPersistent(in: version)
    }

    /// The protocols the client would switch to; `nil` when it asks for none in a way that counts.
    ///
    /// RFC 9110 §7.8: ignored in HTTP/1.0, and without `Connection: upgrade`.
    package var upgrade: Range<Int>? {
        guard version == .http11, fields.connection.upgrade else { return nil }
        return fields.only(.upgrade)?.value
    }

    /// Whether the client asks for WebSocket and nothing else, by a GET without content
    /// (RFC 6455 §4.1).
    package func asksForWebSocket(_ octets: Span<UInt8>) -> Bool {
        guard let upgrade, method == .get, framing == .none else { return false }
        return OctetScan.equal(octets, upgrade, "websocket")
    }

    /// Whether `TE` says that the client takes trailers (RFC 9110 §10.1.4).
    package func acceptsTrailers(_ octets: Span<UInt8>) -> Bool {
        guard version == .http11, let field = fields.only(.te) else { return false }
        return OctetScan.equal(octets, field.value, "trailers")
    }

    /// How many more hops an OPTIONS request may take; `nil` when it does not say, or not as a
    /// number (RFC 9110 §7.6.2).
    package func maxForwards(_ octets: Span<UInt8>) -> UInt64? {
        guard method == .options, let field = fields.only(.maxForwards),
            ContentLength.isNumber(octets, field.value)
        else { return nil }
        return ContentLength.number(octets, field.value)
    }
}

extension RequestHead {
    /// Reads a complete head.
    ///
    /// Errors are found in this order: start line and field lines byte by byte, then Host,
    /// repeated fields, framing, expectation.
    ///
    /// - `octets`: exactly the head, from the method to the blank line, as ``HeadScanner`` found
    ///   it.
    /// - `isSecure`: the connection has TLS.
    package mutating func read(
        _ octets: Span<UInt8>,
        isSecure: Bool,
        limits: HeadLimits
    ) throws(Malformed) {
        forget()
        count = octets.count
        let lineEnd = try StartLine.end(octets, limits: limits)
        line = try RequestLine(octets, 0..<lineEnd, isSecure: isSecure, limits: limits)
        firstFieldStart = lineEnd + 2
        try fields.read(
            octets,
            from: firstFieldStart,
            role: .request,
            fieldsMax: limits.fieldsMax,
            nameBytesMax: limits.fieldNameBytesMax
        )
        try readHost(octets)
        guard fields.repeatedKinds.isDisjoint(with: .singletons) else {
            throw Malformed(.fieldRepeated, at: 0)
        }
        framing = try BodyFraming(requestFields: fields, octets, version: line.version)
        try readExpectation(octets)
    }

    /// A head that is rejected half-way must not be mistaken for the one before.
    private mutating func forget() {
        line = RequestLine()
        fields.removeAll()
        framing = .none
        authority = 0..<0
        expectsContinue = false
        firstFieldStart = 0
    }

    /// RFC 9112 §3.2 ¶¶5–6, §3.2.2.
    private mutating func readHost(_ octets: Span<UInt8>) throws(Malformed) {
        guard let host = fields.first(.host) else {
            // An absolute-form target does not make up for it: every HTTP/1.1 client sends Host.
            guard version == .http10 else {
                throw Malformed(.hostMissing, at: line.target.upperBound)
            }
            authority = line.authority
            return
        }
        guard !fields.repeatedKinds.contains(.host),
            let named = Authority(octets, host.value)
        else { throw Malformed(.hostInvalid, at: host.value.lowerBound) }
        authority = host.value
        guard form == .absolute else { return }
        // RFC 9112 §3.2.2 ¶3 would ignore Host. A request that names two hosts is refused instead.
        guard let asked = Authority(octets, line.authority),
            Authority.same(octets, named, asked, isHTTPS: line.isHTTPSTarget)
        else { throw Malformed(.hostDiffers, at: host.value.lowerBound) }
        authority = line.authority
    }

    /// RFC 9110 §10.1.1; not read in HTTP/1.0.
    private mutating func readExpectation(_ octets: Span<UInt8>) throws(Malformed) {
        expectsContinue = false
        guard version == .http11, let field = fields.first(.expect) else { return }
        guard OctetScan.equal(octets, field.value, "100-continue") else {
            throw Malformed(.expectation, at: field.value.lowerBound)
        }
        // Without content there is nothing to continue with.
        expectsContinue = framing != .none && framing != .length(0)
    }
}
