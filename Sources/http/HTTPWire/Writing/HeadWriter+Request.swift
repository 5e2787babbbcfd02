extension HeadWriter {
    /// How a request is forwarded.
    package struct RequestOptions: Sendable {
        /// The kinds of the client's fields that end here; begin with
        /// ``FieldKindSet/neverToOrigin``. Framing fields and Connection's nominations end here in
        /// any case.
        package var dropping: FieldKindSet = .neverToOrigin
        /// Fields that stay although their kind ends here.
        package var keeping = FieldNameSet()
        /// Fields whose twins end here, since CGI can't tell the two apart.
        package var guarding = FieldNameSet()
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
        _ options: RequestOptions,
        into out: inout [UInt8]
    ) {
        var dropping = options.dropping.union(.hopByHop)
        let firstLine = head.firstFieldStart
        var start = 0
        if head.version != .http11 || head.form == .absolute {
            start = firstLine
            requestLine(head, bytes, into: &out)
        }
        if head.form == .absolute, !head.fields.contains(.host), !options.dropping.contains(.host) {
            // For an HTTP/1.0 client.
            field("Host", bytes, head.authority, into: &out)
        }
        let hops = head.maxForwards(bytes)
        if hops != nil { dropping.insert(FieldKindSet(.maxForwards)) }
        copy(
            head.fields,
            bytes,
            from: start,
            firstLine: firstLine,
            dropping: dropping,
            keeping: options.keeping,
            guarding: options.guarding,
            into: &out
        )
        // RFC 9110 §7.6.2. Zero never comes here: such a request is answered by the gateway.
        if let hops { field("Max-Forwards", hops > 0 ? hops - 1 : 0, into: &out) }
        framing(options.framing, into: &out)
        connection(head, bytes, options, into: &out)
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
        _ options: RequestOptions,
        into out: inout [UInt8]
    ) {
        let upgrade = options.forwardsUpgrade && !options.closes ? head.upgrade : nil
        if options.closes {
            out.append(
                options.acceptsTrailers ? "Connection: close, TE\r\n" : "Connection: close\r\n"
            )
        } else if let upgrade {
            field("Upgrade", bytes, upgrade, into: &out)
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

extension RequestHead {
    /// Whether the request is for the server and no resource of it: `OPTIONS *`, which is also what
    /// `OPTIONS http://host` without path and query means (RFC 9112 §3.2.4).
    package var isForServer: Bool {
        form == .asterisk
            || form == .absolute && method == .options && path.isEmpty && query.isEmpty
    }
}
