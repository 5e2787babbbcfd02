/// The names in IANA's HTTP Method Registry (RFC 9110 §16.1.1), but for the `*` that it reserves.
///
/// Methods are compared with case (RFC 9110 §9.1), and yet Django, Flask and others turn them into
/// upper case: for them `post` is `POST`. A rule for POST would be passed by.
package enum RegisteredMethod {
    /// As registered in November 2026.
    package static let names = [
        "ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "DELETE",
        "GET", "HEAD", "LABEL", "LINK", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL",
        "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS", "ORDERPATCH", "PATCH", "POST", "PRI",
        "PROPFIND", "PROPPATCH", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "TRACE", "UNBIND",
        "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
    ]

    private static let octets = names.map { Array($0.utf8) }

    /// Whether a method is one of the names, but not in upper case.
    static func isMisspelt(_ octets: Span<UInt8>, _ method: Range<Int>) -> Bool {
        guard method.contains(where: { isLowerCase(octets[$0]) }) else { return false }
        return Self.octets.contains { name in
            name.count == method.count
                && name.indices.allSatisfy {
                    let octet = octets[method.lowerBound + $0]
                    return (isLowerCase(octet) ? octet & 0xDF : octet) == name[$0]
                }
        }
    }

    private static func isLowerCase(_ octet: UInt8) -> Bool { octet &- 0x61 < 26 }
}
