package import HTTPWire

/// An address on which a socket listens, or to which it connects.
package enum ServerAddress: Hashable, Sendable {
    case ip(IPAddress, port: UInt16)
    /// A host name, resolved by the gateway.
    case name(String, port: UInt16)
    /// A socket in the file system, as an absolute path.
    case unix(String)

    /// The longest path that fits a socket address on Linux and macOS, without its final zero.
    private static let pathBytesMax = 103

    /// Reads `10.0.0.5:8080`, `[2001:db8::1]:8080`, `shop.internal:8080` or `unix:/run/shop.sock`.
    ///
    /// Port 0 lets the system choose, which only makes sense for listening.
    package init?(text: String, allowsPortZero: Bool) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard path.hasPrefix("/"), path.utf8.count <= Self.pathBytesMax, !path.hasSuffix("/")
            else { return nil }
            self = .unix(path)
            return
        }
        guard let colon = text.lastIndex(of: ":"),
            let port = Int(digits: text[text.index(after: colon)...]),
            (allowsPortZero ? 0...65_535 : 1...65_535).contains(port)
        else { return nil }
        self.init(host: text[..<colon], port: UInt16(port))
    }

    private init?(host: Substring, port: UInt16) {
        if host.hasPrefix("["), host.hasSuffix("]") {
            guard let address = IPAddress(String(host.dropFirst().dropLast())), host.contains(":")
            else { return nil }
            self = .ip(address, port: port)
        } else if let address = IPAddress(String(host)) {
            // A bare IPv6 address and its port can't be distinguished.
            guard !host.contains(":") else { return nil }
            self = .ip(address, port: port)
        } else {
            guard Self.isName(host) else { return nil }
            self = .name(host.lowercased(), port: port)
        }
    }

    /// The address in the configuration's form.
    package var text: String {
        switch self {
        case .ip(.v4(let address), let port): "\(IPAddress.v4(address).text):\(port)"
        case .ip(let address, let port): "[\(address.text)]:\(port)"
        case .name(let name, let port): "\(name):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }

    /// Whether a socket that listens here also takes the port of another address, because it stands
    /// for all addresses. That of IPv6 includes IPv4 (ipv6(7), `IPV6_V6ONLY` is off).
    package func includes(_ other: ServerAddress) -> Bool {
        guard case .ip(let mine, let port) = self, case .ip(let theirs, port) = other else {
            return false
        }
        return switch (mine, theirs) {
        case (.v6(high: 0, low: 0), _), (.v4(0), .v4): true
        case (.v4, _), (.v6, _): false
        }
    }

    package var isUnix: Bool { if case .unix = self { true } else { false } }

    /// Whether only processes of this host can reach it.
    package var isLocal: Bool {
        switch self {
        case .ip(.v4(let address), _): address >> 24 == 127
        case .ip(.v6(let high, let low), _): high == 0 && low == 1
        case .name(let name, _): name == "localhost"
        case .unix: true
        }
    }

    /// RFC 1123 §2.1, with underscores, which names of containers have. A name of only digits and
    /// dots would be a mistyped address.
    package static func isName(_ text: Substring) -> Bool {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...253).contains(text.utf8.count),
            labels.contains(where: { $0.contains { $0.isLetter } })
        else { return false }
        return labels.allSatisfy { label in
            (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                && label.allSatisfy {
                    $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_")
                }
        }
    }
}
