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

    /// Why this request is not one of them; `nil` when it is.
    ///
    /// Slow and obvious, for explanations. Lanes ask ``RuleSet/route(method:host:view:)``.
    package func mismatch(
        method: Span<UInt8>,
        host: Span<UInt8>,
        view: TargetView,
        reading: TargetView.Reading
    ) -> Mismatch? {
        guard self.host.matches(host) else { return .host }
        if let methods {
            guard methods.contains(where: { Self.isSame(Array($0.utf8).span, method) }) else {
                return .method
            }
        }
        return path.matches(view, reading) ? nil : .path
    }

    /// Whether every request that meets the other match meets this one.
    ///
    /// A rule that stands behind one that covers it is never reached.
    package func covers(_ other: RouteMatch) -> Bool {
        guard path.covers(other.path), host.covers(other.host) else { return false }
        guard let methods else { return true }
        guard let theirs = other.methods else { return false }
        return theirs.allSatisfy(methods.contains)
    }

    /// The match as one line: `POST api.example.com /v1/orders`.
    package var text: String {
        [methods?.joined(separator: ",") ?? "*", host.text, path.text].joined(separator: " ")
    }

    static func isSame(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        for index in 0..<left.count where left[index] != right[index] { return false }
        return true
    }
}
