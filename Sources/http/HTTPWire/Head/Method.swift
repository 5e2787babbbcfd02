/// The methods that framing or forwarding treat differently; all others are `other` and forwarded.
///
/// Methods are compared with case (RFC 9110 §9.1). `get` is another method than `GET`, and refused;
/// see ``RegisteredMethod``.
package enum Method: String, Sendable {
    case get = "GET"
    case head = "HEAD"
    case post = "POST"
    case put = "PUT"
    case delete = "DELETE"
    case options = "OPTIONS"
    case patch = "PATCH"
    case connect = "CONNECT"
    case trace = "TRACE"
    case other = ""

    /// `range`: a valid token within `bytes`.
    static func read(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Method {
        switch range.count {
        case 3:
            if ByteScan.isSame(bytes, range, as: "GET") { return .get }
            if ByteScan.isSame(bytes, range, as: "PUT") { return .put }
        case 4:
            if ByteScan.isSame(bytes, range, as: "POST") { return .post }
            if ByteScan.isSame(bytes, range, as: "HEAD") { return .head }
        case 5:
            if ByteScan.isSame(bytes, range, as: "PATCH") { return .patch }
            if ByteScan.isSame(bytes, range, as: "TRACE") { return .trace }
        case 6:
            if ByteScan.isSame(bytes, range, as: "DELETE") { return .delete }
        case 7:
            if ByteScan.isSame(bytes, range, as: "OPTIONS") { return .options }
            if ByteScan.isSame(bytes, range, as: "CONNECT") { return .connect }
        default: break
        }
        return .other
    }

    /// Whether a request may be sent twice without harm (RFC 9110 §9.2.2).
    package var isIdempotent: Bool {
        switch self {
        case .get, .head, .put, .delete, .options, .trace: true
        case .post, .patch, .connect, .other: false
        }
    }

    /// Whether a request asks for no change (RFC 9110 §9.2.1).
    package var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace: true
        case .post, .put, .delete, .patch, .connect, .other: false
        }
    }

    /// Whether requests with this method usually have content. An origin that expects none with
    /// other methods may leave it unread and take it for the connection's next request.
    package var usuallyHasContent: Bool {
        switch self {
        case .post, .put, .patch: true
        case .get, .head, .delete, .options, .connect, .trace, .other: false
        }
    }
}

/// The names in IANA's HTTP Method Registry (RFC 9110 §16.1.1), but for the `*` that it reserves.
///
/// Methods are compared with case (RFC 9110 §9.1), yet Django, Flask and others turn them into
/// upper case: for them `post` is `POST`. Such a request would get past a rule for POST.
package enum RegisteredMethod {
    /// As registered in November 2026.
    package static let names = [
        "ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "DELETE",
        "GET", "HEAD", "LABEL", "LINK", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL",
        "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS", "ORDERPATCH", "PATCH", "POST", "PRI",
        "PROPFIND", "PROPPATCH", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "TRACE", "UNBIND",
        "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
    ]

    private static let bytes = names.map { Array($0.utf8) }

    /// Whether a method is one of the names, but not in upper case.
    static func isMisspelt(_ bytes: Span<UInt8>, _ method: Range<Int>) -> Bool {
        guard method.contains(where: { isLowerCase(bytes[$0]) }) else { return false }
        return Self.bytes.contains { name in
            name.count == method.count
                && name.indices.allSatisfy {
                    let byte = bytes[method.lowerBound + $0]
                    return (isLowerCase(byte) ? byte & 0xDF : byte) == name[$0]
                }
        }
    }

    private static func isLowerCase(_ byte: UInt8) -> Bool { byte &- 0x61 < 26 }
}
