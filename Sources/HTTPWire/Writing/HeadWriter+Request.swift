extension HeadWriter {
    /// How a request is forwarded.
    package struct RequestOptions: Sendable {
        /// The kinds of the client's fields that end here; begin with
        /// ``FieldKindSet/neverToOrigin``. Framing fields and Connection's nominations end here in
        /// any case.
        package var dropping: FieldKindSet = .neverToOrigin
        /// More names that end here.
        package var names = FieldNameSet()
        /// How the content goes to the origin; usually the head's own framing.
        package var framing: BodyFraming = .none
        /// Tell the origin that the connection ends with this request. Wins over `forwardsUpgrade`.
        package var closes = false
        /// Ask the origin for what the client's Upgrade asks for.
        package var forwardsUpgrade = false
        /// Tell the origin that trailers are taken.
        package var acceptsTrailers = false

        package init() {}
    }

    /// Appends request line and fields; own fields and ``endHead(into:)`` follow.
    ///
    /// The target is forwarded as received, in origin-form (RFC 9110 §7.7); of an absolute-form
    /// OPTIONS without path `*` is left (RFC 9112 §3.2.4). The version is always 1.1.
    package static func beginRequest(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        _ options: RequestOptions,
        into out: inout [UInt8]
    ) {
        var dropping = options.dropping.union(.hopByHop)
        let firstLine = head.firstFieldStart
        var start = 0
        if head.version != .http11 || head.form == .absolute {
            start = firstLine
            requestLine(head, octets, into: &out)
        }
        if head.form == .absolute {
            // RFC 9112 §3.2.2 ¶3: Host is generated from the target.
            dropping.insert(FieldKindSet(.host))
            if !options.dropping.contains(.host) {
                field("Host", octets, head.authority, into: &out)
            }
        }
        let hops = head.maxForwards(octets)
        if hops != nil { dropping.insert(FieldKindSet(.maxForwards)) }
        copy(
            head.fields,
            octets,
            from: start,
            firstLine: firstLine,
            dropping: dropping,
            names: options.names,
            into: &out
        )
        // RFC 9110 §7.6.2. Zero never comes here: such a request is answered by the gateway.
        if let hops { field("Max-Forwards", hops > 0 ? hops - 1 : 0, into: &out) }
        framing(options.framing, into: &out)
        connection(head, octets, options, into: &out)
        via(head.version, into: &out)
    }

    private static func requestLine(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        into out: inout [UInt8]
    ) {
        out.append(octets, head.methodRange)
        out.append(Octet.space)
        if head.form == .asterisk || head.isOptionsOfServer {
            out.append(UInt8(ascii: "*"))
        } else {
            if head.path.isEmpty { out.append(UInt8(ascii: "/")) }
            out.append(octets, head.pathAndQuery)
        }
        out.append(" HTTP/1.1\r\n")
    }

    private static func connection(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        _ options: RequestOptions,
        into out: inout [UInt8]
    ) {
        let upgrade = options.forwardsUpgrade && !options.closes ? head.upgrade : nil
        if options.closes {
            out.append(
                options.acceptsTrailers ? "Connection: close, TE\r\n" : "Connection: close\r\n"
            )
        } else if let upgrade {
            field("Upgrade", octets, upgrade, into: &out)
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
    /// Whether the target is `OPTIONS http://host` without path and query, which means `*`.
    var isOptionsOfServer: Bool {
        form == .absolute && method == .options && path.isEmpty && query.isEmpty
    }
}
