package import HTTPWire

/// Which requests a rule is for: host, method, path and client, all four.
package struct RouteMatch: Hashable, Sendable {
    /// The first part, in the order host, method, path, client, that a request does not meet.
    package enum Mismatch: String, Sendable {
        case host, method, path, client
    }

    package let host: HostPattern
    /// Method names as in the request line, with regard to case; `nil` for every method.
    package let methods: [String]?
    package let path: PathPattern
    /// The addresses of clients; `nil` for every client.
    package let clients: ClientPattern?

    package init(
        host: HostPattern = .any,
        methods: [String]? = nil,
        path: PathPattern = .all,
        clients: ClientPattern? = nil
    ) {
        self.host = host
        self.methods = methods
        self.path = path
        self.clients = clients
    }

    /// Every request.
    package static let all = RouteMatch()

    /// Why this request is not one of them, its path read as written; `nil` when it is.
    ///
    /// Slow and obvious, for explanations. Event loops ask
    /// ``RuleSet/route(method:host:from:view:)``.
    package func mismatch(
        method: Span<UInt8>,
        host: Span<UInt8>,
        from client: IPAddress? = nil,
        view: TargetView
    ) -> Mismatch? {
        guard self.host.matches(host) else { return .host }
        guard takes(method: method) else { return .method }
        let path = (0..<view.segmentCount).map { Array(view.bytes[view.segment($0)]) }
        guard self.path.matches(path) else { return .path }
        return takes(client: client) ? nil : .client
    }

    /// Whether the match is for this client; `nil` for a peer without an address.
    package func takes(client: IPAddress?) -> Bool { clients?.matches(client) ?? true }

    /// Whether the match is for this method. `GET` takes in `HEAD`, which servers answer by running
    /// what they have for GET (RFC 9110 §9.3.2).
    package func takes(method: Span<UInt8>) -> Bool {
        guard let methods else { return true }
        return methods.contains { name in
            Self.isSame(Array(name.utf8).span, method) || Self.isHead(method) && name == "GET"
        }
    }

    /// Whether every request that meets the other match meets this one.
    ///
    /// A rule after one that covers it is never reached.
    package func covers(_ other: RouteMatch) -> Bool {
        guard path.covers(other.path), host.covers(other.host) else { return false }
        guard clients?.covers(other.clients ?? .all) ?? true else { return false }
        guard methods != nil else { return true }
        guard let theirs = other.methods else { return false }
        return theirs.allSatisfy { takes(method: Array($0.utf8).span) }
    }

    /// The match as one line: `POST api.example.com /v1/orders`, `* * /v1/** from 10.0.0.0/8`.
    package var text: String {
        let route = [methods?.joined(separator: ",") ?? "*", host.text, path.text]
        return (route + (clients.map { ["from", $0.text] } ?? [])).joined(separator: " ")
    }

    static func isHead(_ method: Span<UInt8>) -> Bool {
        method.count == 4 && method[0] == UInt8(ascii: "H") && method[1] == UInt8(ascii: "E")
            && method[2] == UInt8(ascii: "A") && method[3] == UInt8(ascii: "D")
    }

    /// Whether a method is another one's name once its letters are in upper case.
    static func isFolded(_ method: Span<UInt8>, _ name: Span<UInt8>) -> Bool {
        guard method.count == name.count else { return false }
        for index in 0..<method.count {
            let byte = method[index]
            let isLower = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
            guard (isLower ? byte & 0xDF : byte) == name[index] else { return false }
        }
        return true
    }

    static func isSame(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        for index in 0..<left.count where left[index] != right[index] { return false }
        return true
    }
}

/// The hosts that a rule is for. Names are compared without case, port and final dot. Addresses are
/// compared by value, in any spelling.
package enum HostPattern: Hashable, Sendable {
    case any
    /// One host, in lower case.
    case exact([UInt8])
    /// One address. `[::ffff:192.0.2.1]` is the IPv4 address.
    case address(IPAddress)
    /// `*.example.com`: every host with one or more labels in front. Holds `example.com`.
    case under([UInt8])

    /// Reads `api.example.com`, `*.example.com`, `*`, `10.0.0.1` or `[2001:db8::1]`.
    ///
    /// `nil` for anything with a port, a path, or a `*` elsewhere.
    package init?(text: some StringProtocol) {
        var bytes = Array(text.utf8).map(Self.lowerCase)
        if bytes == [UInt8(ascii: "*")] {
            self = .any
            return
        }
        let isUnder = bytes.starts(with: [UInt8(ascii: "*"), UInt8(ascii: ".")])
        if isUnder { bytes.removeFirst(2) }
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        if !isUnder, let address = Self.address(bytes.span, end: bytes.count) {
            self = .address(address)
            return
        }
        guard Self.isName(bytes) else { return nil }
        self = isUnder ? .under(bytes) : .exact(bytes)
    }

    /// The pattern as a rule writes it.
    package var text: String {
        switch self {
        case .any: "*"
        case .exact(let name): String(decoding: name, as: UTF8.self)
        case .under(let name): "*." + String(decoding: name, as: UTF8.self)
        case .address(.v4(let address)): IPAddress.v4(address).text
        case .address(let address): "[\(address.text)]"
        }
    }

    /// Whether this request's host, with or without a port, is one of them.
    package func matches(_ host: Span<UInt8>) -> Bool {
        let end = Self.end(of: host)
        switch self {
        case .any: return true
        case .exact(let name):
            return end == name.count && Self.agrees(name.span, with: host, from: 0)
        case .under(let name):
            let start = end - name.count
            return start >= 2 && host[start - 1] == UInt8(ascii: ".")
                && Self.agrees(name.span, with: host, from: start)
        case .address(let address): return Self.address(host, end: end) == address
        }
    }

    /// Whether the pattern matches every host of the other pattern.
    package func covers(_ other: HostPattern) -> Bool {
        switch (self, other) {
        case (.any, _): return true
        case (_, .any), (.exact, _), (.address, _): return self == other
        case (.under, .exact(let name)): return matches(name.span)
        case (.under, .address): return false
        case (.under(let outer), .under(let inner)): return outer == inner || matches(inner.span)
        }
    }

    /// The address in a host that ends at ``end(of:)``; `nil` for a name.
    static func address(_ host: Span<UInt8>, end: Int) -> IPAddress? {
        guard end > 0 else { return nil }
        switch host[0] {
        case UInt8(ascii: "["):
            guard end > 2, host[end - 1] == UInt8(ascii: "]") else { return nil }
            // An IPv4 address has no brackets.
            guard host.extracting(1..<end - 1).contains(UInt8(ascii: ":")) else { return nil }
            return IPAddress(host, 1..<end - 1)
        case UInt8(ascii: "0")...UInt8(ascii: "9"):
            let address = IPAddress(host, 0..<end)
            guard case .v4 = address else { return nil }
            return address
        default: return nil
        }
    }

    /// Where the name ends: before the port, before a final dot.
    static func end(of host: Span<UInt8>) -> Int {
        var end = host.count
        var index = end
        // A port follows the last colon, and nothing but digits follows the port's colon; inside
        // the brackets of an IPv6 literal the scan stops at "]".
        while index > 0 {
            index -= 1
            let byte = host[index]
            if byte == UInt8(ascii: ":") {
                end = index
                break
            }
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { break }
        }
        if end > 1, host[end - 1] == UInt8(ascii: ".") { end -= 1 }
        return end
    }

    /// A letter of US-ASCII in lower case, any other byte as it is.
    @inline(__always)
    package static func lowerCase(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    /// Whether the bytes of `host` from `start` on begin with `name`, without case.
    static func agrees(_ name: Span<UInt8>, with host: Span<UInt8>, from start: Int) -> Bool {
        guard start >= 0, host.count - start >= name.count else { return false }
        for index in 0..<name.count where lowerCase(host[start + index]) != name[index] {
            return false
        }
        return true
    }

    private static func isName(_ bytes: [UInt8]) -> Bool {
        guard (1...253).contains(bytes.count) else { return false }
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return labels.allSatisfy { label in
            (1...63).contains(label.count)
                && label.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"),
                        UInt8(ascii: "-"), UInt8(ascii: "_"):
                        true
                    default: false
                    }
                }
        }
    }
}

extension Span<UInt8> {
    fileprivate func contains(_ byte: UInt8) -> Bool {
        for index in indices where self[index] == byte { return true }
        return false
    }
}
