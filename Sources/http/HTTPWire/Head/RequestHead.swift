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
    /// The authority that the client asks for: that of an absolute-form target, or else Host; empty
    /// when an HTTP/1.0 client sent neither.
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
    package func host(_ bytes: Span<UInt8>) -> Range<Int> {
        Authority(bytes, authority)?.host ?? authority
    }

    /// Whether the connection may serve another request after this one (RFC 9112 §9.3).
    package var isPersistent: Bool { fields.connection.isPersistent(in: version) }

    /// The protocols to which the client would switch; `nil` when it asks for none in a way that
    /// counts.
    ///
    /// RFC 9110 §7.8: ignored in HTTP/1.0, and without `Connection: upgrade`.
    package var upgrade: Range<Int>? {
        guard version == .http11, fields.connection.upgrade else { return nil }
        return fields.only(.upgrade)?.value
    }

    /// Whether the client asks for WebSocket and nothing else, by a GET without content
    /// (RFC 6455 §4.1).
    package func asksForWebSocket(_ bytes: Span<UInt8>) -> Bool {
        guard let upgrade, method == .get, framing == .none else { return false }
        return ByteScan.equal(bytes, upgrade, to: "websocket")
    }

    /// Whether `TE` says that the client takes trailers (RFC 9110 §10.1.4).
    package func acceptsTrailers(_ bytes: Span<UInt8>) -> Bool {
        guard version == .http11, let field = fields.only(.te) else { return false }
        return ByteScan.equal(bytes, field.value, to: "trailers")
    }

    /// Which kind of gRPC call it is, by its Content-Type; `nil` for any other request.
    package func grpcForm(_ bytes: Span<UInt8>) -> GRPCForm? {
        guard method == .post, let field = fields.only(.contentType) else { return nil }
        if Self.begins(bytes, field.value, with: GRPCForm.web.contentType) { return .web }
        return Self.begins(bytes, field.value, with: GRPCForm.plain.contentType) ? .plain : nil
    }

    /// Whether a media type is this one, alone or with a suffix or parameters.
    private static func begins(
        _ bytes: Span<UInt8>,
        _ value: Range<Int>,
        with name: StaticString
    ) -> Bool {
        let end = value.lowerBound + name.utf8CodeUnitCount
        guard end <= value.upperBound, ByteScan.equal(bytes, value.lowerBound..<end, to: name)
        else {
            return false
        }
        return end == value.upperBound || !ByteSet.token.contains(bytes[end])
            || bytes[end] == UInt8(ascii: "+") || bytes[end] == UInt8(ascii: "-")
    }

    /// How many more hops an OPTIONS request may take; `nil` when it does not say, or not as a
    /// number (RFC 9110 §7.6.2).
    package func maxForwards(_ bytes: Span<UInt8>) -> UInt64? {
        guard method == .options, let field = fields.only(.maxForwards),
            ContentLength.isNumber(bytes, field.value)
        else { return nil }
        return ContentLength.number(bytes, field.value)
    }
}

extension RequestHead {
    /// Reads a complete head.
    ///
    /// Errors are found in this order: start line and field lines byte by byte, then Host,
    /// repeated fields, framing, expectation.
    ///
    /// - `bytes`: exactly the head, from the method to the blank line, as ``HeadScanner`` found
    ///   it.
    /// - `isSecure`: the connection has TLS.
    package mutating func read(
        _ bytes: Span<UInt8>,
        isSecure: Bool,
        limits: HeadLimits
    ) throws(Malformed) {
        forget()
        count = bytes.count
        let lineEnd = try StartLine.end(bytes, limits: limits)
        line = try RequestLine(bytes, 0..<lineEnd, isSecure: isSecure, limits: limits)
        firstFieldStart = lineEnd + 2
        try fields.read(
            bytes,
            from: firstFieldStart,
            role: .request,
            fieldsMax: limits.fieldsMax,
            nameBytesMax: limits.fieldNameBytesMax
        )
        try readHost(bytes)
        guard fields.repeatedKinds.isDisjoint(with: .singletons) else {
            throw Malformed(.fieldRepeated, at: 0)
        }
        framing = try BodyFraming(requestFields: fields, bytes, version: line.version)
        try readExpectation(bytes)
    }

    /// A rejected head must not look like the previous one.
    private mutating func forget() {
        line = RequestLine()
        fields.removeAll()
        framing = .none
        authority = 0..<0
        expectsContinue = false
        firstFieldStart = 0
    }

    /// RFC 9112 §3.2 ¶¶5–6, §3.2.2.
    private mutating func readHost(_ bytes: Span<UInt8>) throws(Malformed) {
        guard let host = fields.first(.host) else {
            // An absolute-form target does not make up for it: every HTTP/1.1 client sends Host.
            guard version == .http10 else {
                throw Malformed(.hostMissing, at: line.target.upperBound)
            }
            authority = line.authority
            return
        }
        guard !fields.repeatedKinds.contains(.host),
            let named = Authority(bytes, host.value)
        else { throw Malformed(.hostInvalid, at: host.value.lowerBound) }
        authority = host.value
        guard form == .absolute else { return }
        // RFC 9112 §3.2.2 ¶3 would ignore Host. Here a request that names two hosts is refused.
        guard let asked = Authority(bytes, line.authority),
            Authority.same(bytes, named, as: asked, isHTTPS: line.isHTTPSTarget)
        else { throw Malformed(.hostDiffers, at: host.value.lowerBound) }
        authority = line.authority
    }

    /// RFC 9110 §10.1.1; not read in HTTP/1.0.
    private mutating func readExpectation(_ bytes: Span<UInt8>) throws(Malformed) {
        guard version == .http11, let field = fields.first(.expect) else { return }
        guard ByteScan.equal(bytes, field.value, to: "100-continue") else {
            throw Malformed(.expectation, at: field.value.lowerBound)
        }
        // Without content there is nothing to continue with.
        expectsContinue = framing != .none && framing != .length(0)
    }
}

// What a request says of its browser, and of the page that had the browser send it.
extension RequestHead {
    /// Whether the request asks for an IP address, for `localhost`, or for one of these names.
    ///
    /// Another site can have its own name lead to any address (DNS rebinding). Its page then has
    /// the same origin as the server at that address. A site can't have an address as its name.
    ///
    /// - names: in lower case.
    package func asksForAddress(_ bytes: Span<UInt8>, or names: [[UInt8]] = []) -> Bool {
        guard let host = Authority(bytes, authority)?.host else { return false }
        // Only an IPv6 address has brackets.
        return bytes[host.lowerBound] == UInt8(ascii: "[")
            || ByteScan.equal(bytes, host, to: "localhost") || IPAddress(bytes, host) != nil
            || names.contains { ByteScan.equal(bytes, host, to: $0.span, at: 0..<$0.count) }
    }

    /// Whether a browser sends the request for a page of another host.
    package func isCrossSite(_ bytes: Span<UInt8>) -> Bool {
        for field in fields.fields {
            if ByteScan.equal(bytes, field.name, to: "origin") {
                guard isOwnOrigin(bytes, field.value) else { return true }
            } else if ByteScan.equal(bytes, field.name, to: "sec-fetch-site") {
                guard
                    ByteScan.equal(bytes, field.value, to: "same-origin")
                        || ByteScan.equal(bytes, field.value, to: "none")
                else { return true }
            }
        }
        return false
    }

    /// Whether an origin (RFC 6454 §6.2) is that of the request's host. Both schemes count, since a
    /// proxy may have ended TLS.
    private func isOwnOrigin(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
        for scheme in ["http://", "https://"] as [StaticString] {
            let end = value.lowerBound + scheme.utf8CodeUnitCount
            guard end < value.upperBound,
                ByteScan.equal(bytes, value.lowerBound..<end, to: scheme)
            else { continue }
            return ByteScan.equal(bytes, end..<value.upperBound, to: bytes, at: authority)
        }
        return false
    }

    /// The token of `Authorization: Bearer` (RFC 6750 §2.1); `nil` when there is none.
    package func bearerToken(_ bytes: Span<UInt8>) -> Range<Int>? {
        guard let value = fields.only(.authorization)?.value else { return nil }
        let end = value.lowerBound + 7
        guard end < value.upperBound,
            ByteScan.equal(bytes, value.lowerBound..<end, to: "bearer ")
        else { return nil }
        return ByteScan.trimmed(bytes, end..<value.upperBound)
    }
}

extension RequestHead {
    /// Whether the request is a CORS preflight (Fetch, "CORS-preflight request"): a browser asks
    /// whether a page of another origin may send a request.
    ///
    /// It is OPTIONS with one Origin and one Access-Control-Request-Method, and has neither content
    /// nor credentials nor proof. A request by which an origin could take it for another one is
    /// none. Such a request has Upgrade, a field that overrides method, path or host, a name that
    /// CGI can't tell from a known one, or Connection options that name fields, which then end
    /// here.
    ///
    /// `Content-Length: 0` is no content: some proxies add it.
    package func isPreflight(_ bytes: Span<UInt8>) -> Bool {
        guard method == .options, form == .origin, framing == .none || framing == .length(0),
            fields.kinds.isDisjoint(with: .neverInPreflight), fields.connection.nominations == 0
        else { return false }
        var origins = 0
        var methods = 0
        for field in fields.fields {
            guard !field.isTwinOfKnown(bytes), !isOverride(field, bytes) else { return false }
            guard field.kind == .other, !field.value.isEmpty else { continue }
            if ByteScan.equal(bytes, field.name, to: "origin") { origins += 1 }
            if ByteScan.equal(bytes, field.name, to: "access-control-request-method") {
                methods += 1
            }
        }
        return origins == 1 && methods == 1
    }

    /// Whether an origin could take the request for one with another path or host.
    ///
    /// Envoy and Azure's Application Gateway add fields of this kind to every request that they
    /// forward, so these don't count: `X-Envoy-…`, except the path, and `X-Original-Host`.
    private func isOverride(_ field: Field, _ bytes: Span<UInt8>) -> Bool {
        guard field.kind == .targetOverride else { return false }
        if ByteScan.equal(bytes, field.name, to: "x-envoy-original-path") { return true }
        if ByteScan.equal(bytes, field.name, to: "x-original-host") { return false }
        let prefix = "x-envoy-" as StaticString
        let end = field.name.lowerBound + min(field.name.count, prefix.utf8CodeUnitCount)
        return !ByteScan.equal(bytes, field.name.lowerBound..<end, to: prefix)
    }
}

extension RequestHead {
    /// Whether the request has passed this gateway before (RFC 9110 §7.6).
    ///
    /// Looks for ``HeadWriter/pseudonym`` as received-by of any member of Via:
    /// `received-protocol RWS received-by [ RWS comment ]`.
    package func hasPassedHere(_ bytes: Span<UInt8>) -> Bool {
        guard fields.contains(.via) else { return false }
        for field in fields.fields where field.kind == .via {
            var index = field.value.lowerBound
            let end = field.value.upperBound
            while index < end {
                let start = index
                while index < end, bytes[index] != UInt8(ascii: ",") { index += 1 }
                let member = ByteScan.trimmed(bytes, start..<index)
                if Self.receivedBy(bytes, member, is: HeadWriter.pseudonym) { return true }
                index += 1
            }
        }
        return false
    }

    private static func receivedBy(
        _ bytes: Span<UInt8>,
        _ member: Range<Int>,
        is pseudonym: StaticString
    ) -> Bool {
        var start = member.lowerBound
        while start < member.upperBound, !ASCIIByte.isBlank(bytes[start]) { start += 1 }
        while start < member.upperBound, ASCIIByte.isBlank(bytes[start]) { start += 1 }
        var end = start
        while end < member.upperBound, !ASCIIByte.isBlank(bytes[end]) { end += 1 }
        return ByteScan.equal(bytes, start..<end, to: pseudonym)
    }
}

/// The kinds of gRPC calls: `application/grpc` with or without a codec, and gRPC-Web.
package enum GRPCForm: Sendable {
    case plain
    case web

    /// The type of the gateway's own answers.
    package var contentType: StaticString {
        switch self {
        case .plain: "application/grpc"
        case .web: "application/grpc-web"
        }
    }
}

/// Memory for heads that are read one after the other.
///
/// A head is valid until the next one of its kind is read.
package final class HeadScratch {
    package var request = RequestHead()
    package var response = ResponseHead()

    package init() {}
}
