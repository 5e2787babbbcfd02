package import HTTPWire

/// Which requests a rule is for: host, method and path, all three.
package struct RouteMatch: Hashable, Sendable {
    /// The first part, in the order host, method, path, that a request does not meet.
    package enum Mismatch: String, Sendable {
        case host, method, path
    }

    package let host: HostPattern
    /// Method names as in the request line, with regard to case; `nil` for every method.
    package let methods: [String]?
    package let path: PathPattern

    package init(host: HostPattern = .any, methods: [String]? = nil, path: PathPattern = .all) {
        self.host = host
        self.methods = methods
        self.path = path
    }

    /// Every request.
    package static let all = RouteMatch()

    /// Why this request is not one of them, its path read as written; `nil` when it is.
    ///
    /// Slow and obvious, for explanations. Event loops ask ``RuleSet/route(method:host:view:)``.
    package func mismatch(method: Span<UInt8>, host: Span<UInt8>, view: TargetView) -> Mismatch? {
        guard self.host.matches(host) else { return .host }
        guard takes(method: method) else { return .method }
        let path = (0..<view.segmentCount).map { Array(view.bytes[view.segment($0)]) }
        return self.path.matches(path) ? nil : .path
    }

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
        guard methods != nil else { return true }
        guard let theirs = other.methods else { return false }
        return theirs.allSatisfy { takes(method: Array($0.utf8).span) }
    }

    /// The match as one line: `POST api.example.com /v1/orders`.
    package var text: String {
        [methods?.joined(separator: ",") ?? "*", host.text, path.text].joined(separator: " ")
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
