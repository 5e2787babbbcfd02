import Encodings

extension HeadWriter {
    /// How a response is given to the client.
    package struct ResponseOptions: Sendable {
        /// The kinds of the origin's fields that end here; begin with
        /// ``FieldKindSet/neverToClient``.
        package var dropping: FieldKindSet = .neverToClient
        /// How the content goes to the client. `none` for interim responses and for responses that
        /// never have content. Content-Length is then passed on where it is about another message
        /// (HEAD, 304).
        package var framing: BodyFraming = .none
        package var connection = ConnectionField.keep
        /// The time of receipt as 29 bytes of an IMF-fixdate, for a final response without Date.
        package var date: [UInt8] = []

        package init() {}
    }

    /// What a response says about the connection.
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
        _ bytes: Span<UInt8>,
        options: ResponseOptions,
        into out: inout [UInt8]
    ) {
        var startLine = 0..<head.firstFieldStart
        // A line with its own version and with the space before the reason is copied with the
        // fields.
        if head.version != .http11 || head.reason.lowerBound != 13 {
            startLine = startLine.upperBound..<startLine.upperBound
            out.append("HTTP/1.1 ")
            out.append(decimal: UInt64(head.status))
            out.append(ASCIIByte.space)
            out.append(bytes, head.reason)
            out.appendLineEnd()
        }
        var dropping = options.dropping.union(.hopByHop)
        let namesOwnScheme = head.fields.namesOwnScheme(bytes)
        if namesOwnScheme { dropping.insert(FieldKindSet(.wwwAuthenticate)) }
        head.fields.appendForwarded(bytes, after: startLine, dropping: dropping, to: &out)
        if namesOwnScheme { head.fields.appendForeignChallenges(bytes, to: &out) }
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
            field("Upgrade", bytes, at: upgrade.value, into: &out)
        }
        connection(options.connection, into: &out)
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
        out.append(ASCIIByte.space)
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

/// The reason phrases of RFC 9110 §15, RFC 6585 and RFC 8470, for local answers.
package enum ReasonPhrase {
    /// The phrase of a status; empty when it has none here.
    package static func of(_ status: Int) -> StaticString {
        switch status {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 103: "Early Hints"
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 411: "Length Required"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 417: "Expectation Failed"
        case 421: "Misdirected Request"
        case 422: "Unprocessable Content"
        case 425: "Too Early"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        case 508: "Loop Detected"
        default: ""
        }
    }
}

/// The IMF-fixdate of RFC 9110 §5.6.7, `Sun, 06 Nov 1994 08:49:37 GMT`.
package enum HTTPDate {
    /// The 29 bytes for a time.
    ///
    /// `seconds`: since 1970-01-01T00:00:00Z, without leap seconds; 0...253402300799, the end
    ///   of the year 9999, and clamped to it.
    package static func bytes(unixSeconds seconds: Int64) -> [UInt8] {
        let seconds = min(max(seconds, 0), 253_402_300_799)
        let days = seconds / 86400
        let second = seconds % 86400
        let date = CivilDate(daysSinceEpoch: days)
        var out: [UInt8] = []
        out.reserveCapacity(29)
        // 1970-01-01 was a Thursday.
        out.append(contentsOf: name("ThuFriSatSunMonTueWed", days % 7))
        out.append(", ")
        appendTwo(date.day, to: &out)
        out.append(ASCIIByte.space)
        out.append(contentsOf: name("JanFebMarAprMayJunJulAugSepOctNovDec", date.month - 1))
        out.append(ASCIIByte.space)
        appendTwo(date.year / 100, to: &out)
        appendTwo(date.year % 100, to: &out)
        out.append(ASCIIByte.space)
        appendTwo(second / 3600, to: &out)
        out.append(UInt8(ascii: ":"))
        appendTwo(second / 60 % 60, to: &out)
        out.append(UInt8(ascii: ":"))
        appendTwo(second % 60, to: &out)
        out.append(" GMT")
        return out
    }

    private static func name(_ names: String, _ index: Int64) -> [UInt8] {
        Array(names.utf8.dropFirst(Int(index) * 3).prefix(3))
    }

    private static func appendTwo(_ number: Int64, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / 10))
        out.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
    }
}
