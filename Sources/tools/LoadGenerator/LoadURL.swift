/// The URL that requests go to.
package struct LoadURL: Equatable, Sendable {
    package let isSecure: Bool
    /// Without the brackets of an IPv6 address.
    package let host: String
    package let port: UInt16
    /// Path and query, as they go into the request line.
    package let target: String
    /// Host and port, as they go into the Host field.
    package let authority: String

    /// Reads `http://127.0.0.1:8080/v1/orders?dry=1`; `nil` for anything else than http and https
    /// with a host, for user information, and for a fragment.
    package init?(_ text: String) {
        guard let scheme = ["http://", "https://"].first(where: text.hasPrefix) else { return nil }
        isSecure = scheme == "https://"
        let rest = text.dropFirst(scheme.count)
        let end = rest.firstIndex { "/?".contains($0) } ?? rest.endIndex
        let authority = rest[..<end]
        let target = rest[end...]
        guard !authority.isEmpty, !authority.contains("@"), !text.contains("#"),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        self.authority = String(authority)
        self.target = (target.hasPrefix("/") ? "" : "/") + target
        var name = authority
        var port = isSecure ? UInt16(443) : 80
        if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
            guard let given = UInt16(authority[authority.index(after: colon)...]), given > 0 else {
                return nil
            }
            port = given
            name = authority[..<colon]
        }
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        guard !name.isEmpty else { return nil }
        host = String(name)
        self.port = port
    }

    /// The whole.
    package var text: String { "\(isSecure ? "https" : "http")://\(authority)\(target)" }
}
