/// A response head, read strictly, as ranges into its bytes.
///
/// Reusable like ``RequestHead``. Interim responses (1xx) are separate heads: the caller reads one,
/// forwards or drops it, and scans for the next. It also limits their number.
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
    /// and no byte is left.
    ///
    /// RFC 9112 §9.3. It may not when a response announces content that its kind never has, as
    /// answers to HEAD do: some origins send that content, which would then answer the next
    /// request.
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
    /// - `bytes`: exactly the head, from the status line to the blank line.
    /// - `method`: of the request that it answers.
    /// - `upgradeSent`: the request was forwarded with Upgrade.
    package mutating func read(
        _ bytes: Span<UInt8>,
        to method: Method,
        upgradeSent: Bool,
        limits: HeadLimits
    ) throws(Malformed) {
        forget()
        count = bytes.count
        let lineEnd = try StartLine.end(bytes, limits: limits)
        line = try StatusLine(bytes, 0..<lineEnd)
        firstFieldStart = lineEnd + 2
        try fields.read(
            bytes,
            from: firstFieldStart,
            role: .response,
            fieldsMax: limits.fieldsMax,
            nameBytesMax: limits.fieldNameBytesMax
        )
        // RFC 9110 §7.8 ¶6, §15.2.2: only to the protocol that the request's Upgrade named.
        guard status != 101 || upgradeSent && switchesToWebSocket(bytes) else {
            throw Malformed(.upgradeUnasked, at: 0)
        }
        framing = try BodyFraming(
            responseFields: fields,
            bytes,
            version: version,
            status: status,
            to: method
        )
        if case .length(let length) = framing {
            contentLength = length
        } else if let field = fields.first(.contentLength) {
            contentLength = try ContentLength.read(bytes, field.value)
        }
    }

    /// A rejected head must not look like the previous one.
    private mutating func forget() {
        line = StatusLine()
        fields.removeAll()
        framing = .none
        contentLength = nil
        firstFieldStart = 0
    }

    private func switchesToWebSocket(_ bytes: Span<UInt8>) -> Bool {
        guard let field = fields.only(.upgrade) else { return false }
        return ByteScan.equal(bytes, field.value, to: "websocket")
    }
}

/// `HTTP-version SP status-code SP [ reason-phrase ]` (RFC 9112 §4), without its CRLF.
struct StatusLine {
    var version: HTTPVersion = .http11
    var status = 0
    var reason: Range<Int> = 0..<0

    init() {}

    /// Reads a status line.
    ///
    /// The space before an empty reason may be missing, since many origins leave it out. The
    /// gateway's own lines have it.
    ///
    /// Throws `status-line-syntax`, `status-unknown`, in this order.
    init(_ bytes: Span<UInt8>, _ line: Range<Int>) throws(Malformed) {
        let start = line.lowerBound
        guard line.count >= 12, bytes[start + 8] == ASCIIByte.space,
            line.count == 12 || bytes[start + 12] == ASCIIByte.space,
            HTTPVersion.hasSyntax(bytes, start..<start + 8),
            let spoken = HTTPVersion(bytes, start..<start + 8)
        else { throw Malformed(.statusLineSyntax, at: start) }
        version = spoken
        for index in start + 9..<start + 12 {
            guard ASCIIByte.isDigit(bytes[index]) else {
                throw Malformed(.statusLineSyntax, at: index)
            }
            status = status * 10 + Int(bytes[index] & 0x0F)
        }
        // RFC 9110 §15 would treat 600 as 500; an origin that invents classes is broken.
        guard status >= 100, status < 600 else { throw Malformed(.statusUnknown, at: start + 9) }
        reason = min(start + 13, line.upperBound)..<line.upperBound
    }
}

extension ResponseHead {
    /// Whether a cache that clients share may store the response and answer others with it
    /// (RFC 9111 §3, §4.2).
    ///
    /// A response for one client must have no part in such a response. In doubt the answer is yes:
    ///
    /// - A 304 does, whatever it says: a cache updates the response that it keeps with its fields
    ///   (§4.3.4).
    /// - Cache-Control says it, unless it has `no-store` or `private` for the whole response and
    ///   neither `public` nor `s-maxage`. What can't be read says it too, and so does `no-cache`: a
    ///   cache may keep the response, and asks before it answers another client with it (§5.2.2.4).
    /// - A field for certain caches (RFC 9213) says it in the same way; such caches read nothing
    ///   else.
    /// - Without Cache-Control: Expires, unless it has expired by its form (`0`, `-1`); else
    ///   Last-Modified, from which caches guess a lifetime (§4.2.2). They guess for a request that
    ///   asks for a representation, and not for POST and the like (RFC 9110 §9.3.3).
    ///
    /// A response that says nothing of all this may not be shared: nothing gives it a lifetime. A
    /// cache that gives one to every response is a matter of its configuration.
    ///
    /// - method: of the request that it answers.
    package func mayBeShared(_ bytes: Span<UInt8>, answering method: Method) -> Bool {
        if status == 304 { return true }
        let said = fields.kinds.intersection(.caching)
        guard !said.isEmpty else { return false }
        if losesCachingField { return true }
        if said.contains(.targetedCacheControl),
            CacheDirectives(fields, bytes, of: .targetedCacheControl).letShare == true
        {
            return true
        }
        if said.contains(.cacheControl),
            let letShare = CacheDirectives(fields, bytes, of: .cacheControl).letShare
        {
            return letShare
        }
        if said.contains(.expires) {
            guard let field = fields.only(.expires) else { return true }
            // RFC 9111 §5.3: an invalid date is in the past.
            return !ByteScan.equal(bytes, field.value, to: "0")
                && !ByteScan.equal(bytes, field.value, to: "-1")
        }
        guard said.contains(.lastModified) else { return false }
        switch method {
        case .get, .head, .other: return true
        case .post, .put, .delete, .options, .patch, .connect, .trace: return false
        }
    }

    /// Whether Connection names a field for caches. That field ends here, and caches in front of
    /// the gateway use only the remaining fields.
    private var losesCachingField: Bool {
        guard fields.connection.nominations > 0 else { return false }
        return fields.fields.contains { $0.isNominated && FieldKindSet.caching.contains($0.kind) }
    }
}

/// What all lines of a kind tell shared caches (RFC 9111 §5.2.2).
private struct CacheDirectives {
    private var isEmpty = true
    private var isMalformed = false
    private var hasNoStore = false
    /// RFC 9111 §5.2.2.3: caches that understand the response disregard `no-store` beside it.
    private var hasMustUnderstand = false
    /// `private`. With names of fields, it is about these fields alone.
    private var keepsAll = false
    /// `public` or `s-maxage`.
    private var invites = false

    /// Whether they let shared caches answer others with the response; `nil` when they say nothing.
    var letShare: Bool? {
        if isMalformed || invites { return true }
        if isEmpty { return nil }
        return !keepsAll && !(hasNoStore && !hasMustUnderstand)
    }

    init(_ section: borrowing FieldSection, _ bytes: Span<UInt8>, of kind: FieldKind) {
        for index in section.fields.indices where section.fields[index].kind == kind {
            var list = ListElements(section.fields[index].value)
            while let element = list.next(bytes) { note(element, bytes) }
            if list.isMalformed { isMalformed = true }
        }
    }

    private mutating func note(_ directive: ListElements.Element, _ bytes: Span<UInt8>) {
        isEmpty = false
        func isNamed(_ name: StaticString) -> Bool {
            ByteScan.equal(bytes, directive.name, to: name)
        }
        if isNamed("no-store") {
            hasNoStore = true
        } else if isNamed("private") {
            if !directive.hasValue { keepsAll = true }
        } else if isNamed("must-understand") {
            hasMustUnderstand = true
        } else if isNamed("public") || isNamed("s-maxage") {
            invites = true
        }
    }
}
