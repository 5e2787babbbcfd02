extension HeadWriter {
    /// How a response is given to the client.
    package struct ResponseOptions: Sendable {
        /// The kinds of the origin's fields that end here; begin with
        /// ``FieldKindSet/neverToClient``.
        package var dropping: FieldKindSet = .neverToClient
        /// How the content goes to the client. `none` for interim responses and what never has
        /// content; then Content-Length is passed on where it speaks of another message (HEAD,
        /// 304).
        package var framing: BodyFraming = .none
        package var connection = ConnectionField.keep
        /// The time of receipt as 29 bytes of an IMF-fixdate, for a final response without Date.
        package var date: [UInt8] = []
        package var addsVia = false

        package init() {}
    }

    /// What a response says of the connection.
    package enum ConnectionField: Sendable {
        /// Nothing: an HTTP/1.1 connection that stays open.
        case keep
        case close
        /// For an HTTP/1.0 client that asked for it.
        case keepAlive
        /// For 101, with the Upgrade field of the origin's response.
        case upgrade
    }

    /// Appends status line and fields; own fields and ``endHead(into:)`` follow.
    package static func beginResponse(
        _ head: borrowing ResponseHead,
        _ octets: Span<UInt8>,
        _ options: ResponseOptions,
        into out: inout [UInt8]
    ) {
        let firstLine = head.firstFieldStart
        var start = 0
        // A line that has its own version and the space before the reason is copied with the
        // fields.
        if head.version != .http11 || head.reason.lowerBound != 13 {
            start = firstLine
            out.append("HTTP/1.1 ")
            out.append(decimal: UInt64(head.status))
            out.append(Octet.space)
            out.append(octets, head.reason)
            out.appendLineEnd()
        }
        var dropping = options.dropping.union(.hopByHop)
        let namesOwnScheme = head.fields.namesOwnScheme(octets)
        if namesOwnScheme { dropping.insert(FieldKindSet(.wwwAuthenticate)) }
        copy(
            head.fields,
            octets,
            from: start,
            firstLine: firstLine,
            dropping: dropping,
            into: &out
        )
        if namesOwnScheme { head.fields.appendForeignChallenges(octets, to: &out) }
        if options.framing == .none {
            // RFC 9110 §8.6 ¶8: not in 1xx and 204.
            if head.status >= 200, head.status != 204, let length = head.contentLength {
                field("Content-Length", length, into: &out)
            }
        } else {
            framing(options.framing, into: &out)
        }
        if head.status >= 200, !head.fields.contains(.date), !options.date.isEmpty {
            field("Date", options.date, into: &out)
        }
        if options.connection == .upgrade, let upgrade = head.fields.only(.upgrade) {
            field("Upgrade", octets, upgrade.value, into: &out)
        }
        connection(options.connection, into: &out)
        if options.addsVia { via(head.version, into: &out) }
    }

    /// Appends the head of a local answer up to its own fields: status line, Date, framing,
    /// Connection.
    ///
    /// - `date`: as in ``ResponseOptions``; empty for none, as in an interim response.
    /// - `framing`: `length` for all that has content; `none` for 1xx, 204 and 304.
    package static func beginLocalResponse(
        status: Int,
        date: [UInt8],
        framing: BodyFraming,
        connection: ConnectionField,
        into out: inout [UInt8]
    ) {
        out.append("HTTP/1.1 ")
        out.append(decimal: UInt64(status))
        out.append(Octet.space)
        out.append(ReasonPhrase.of(status))
        out.appendLineEnd()
        if !date.isEmpty { field("Date", date, into: &out) }
        self.framing(framing, into: &out)
        self.connection(connection, into: &out)
    }

    private static func connection(_ connection: ConnectionField, into out: inout [UInt8]) {
        switch connection {
        case .keep: break
        case .close: out.append("Connection: close\r\n")
        case .keepAlive: out.append("Connection: keep-alive\r\n")
        case .upgrade: out.append("Connection: upgrade\r\n")
        }
    }
}
