/// A response head, read strictly, as ranges into its bytes.
///
/// Reusable like ``RequestHead``. Interim responses (1xx) are heads of their own: read one, forward
/// or drop it, and scan for the next. The caller limits their number.
package struct ResponseHead: ~Copyable, Sendable {
    private var line = StatusLine()
    /// The field lines in their order.
    package private(set) var fields = FieldSection()
    /// How the content is delimited.
    package private(set) var framing: BodyFraming = .none
    /// The value of Content-Length, also where there is no content, as in an answer to HEAD.
    package private(set) var contentLength: UInt64?
    /// The number of bytes of the head.
    package private(set) var count = 0
    /// The first byte after the status line.
    private(set) var firstFieldStart = 0

    package init() {}

    package var version: HTTPVersion { line.version }
    package var status: Int { line.status }
    package var reason: Range<Int> { line.reason }

    /// 1xx, after which another head follows; 101 is not one of them, as it ends HTTP.
    package var isInterim: Bool { status < 200 && status != 101 }

    /// Whether the origin connection may serve another request once the content was read to its end
    /// and nothing is left over.
    ///
    /// RFC 9112 §9.3. Not when a response announces content that its kind never has, as answers to
    /// HEAD do: some origins send it all the same, and it must not answer the next request.
    package var isPersistent: Bool {
        guard framing != .untilClose, status != 101 else { return false }
        if framing == .none, let contentLength, contentLength > 0 { return false }
        if framing == .none, fields.contains(.transferEncoding) { return false }
        return fields.connection.isPersistent(in: version)
    }
}

extension ResponseHead {
    /// Reads a complete head.
    ///
    /// Errors are found in this order: status line and field lines byte by byte, an upgrade
    /// that was not asked for, framing.
    ///
    /// - `octets`: exactly the head, from the status line to the blank line.
    /// - `method`: of the request that it answers.
    /// - `upgradeSent`: the request was forwarded with Upgrade.
    package mutating func read(
        _ octets: Span<UInt8>,
        to method: Method,
        upgradeSent: Bool,
        limits: HeadLimits
    ) throws(Malformed) {
        forget()
        count = octets.count
        let lineEnd = try StartLine.end(octets, limits: limits)
        line = try StatusLine(octets, 0..<lineEnd)
        firstFieldStart = lineEnd + 2
        try fields.read(
            octets,
            from: firstFieldStart,
            role: .response,
            fieldsMax: limits.fieldsMax,
            nameBytesMax: limits.fieldNameBytesMax
        )
        // RFC 9110 §7.8 ¶6, §15.2.2: only to what the request's Upgrade asked for.
        guard status != 101 || upgradeSent && switchesToWebSocket(octets) else {
            throw Malformed(.upgradeUnasked, at: 0)
        }
        framing = try BodyFraming(
            responseFields: fields,
            octets,
            version: version,
            status: status,
            to: method
        )
        if let field = fields.first(.contentLength) {
            contentLength = try ContentLength.read(octets, field.value)
        }
    }

    /// A head that is rejected half-way must not be mistaken for the one before.
    private mutating func forget() {
        line = StatusLine()
        fields.removeAll()
        framing = .none
        contentLength = nil
        firstFieldStart = 0
    }

    private func switchesToWebSocket(_ octets: Span<UInt8>) -> Bool {
        guard let field = fields.only(.upgrade) else { return false }
        return OctetScan.equal(octets, field.value, "websocket")
    }
}
