/// Which certificate a client gets by the name that it asks for (RFC 6066 §3).
///
/// An exact name goes before a wildcard, which stands for one label (RFC 9525 §6.3). The first
/// certificate is for all who ask for no name, or for one that nobody has.
package struct ServerNames: Sendable {
    private var exact: [String: Int] = [:]
    private var wildcards: [String: Int] = [:]

    package init() {}

    /// Notes that a certificate is for a name.
    ///
    /// - Returns: the certificate that has the name already, and keeps it.
    @discardableResult
    package mutating func add(_ name: String, _ certificate: Int) -> Int? {
        let name = Self.normal(name)
        guard name.hasPrefix("*.") else {
            if let holder = exact[name] { return holder == certificate ? nil : holder }
            exact[name] = certificate
            return nil
        }
        let rest = String(name.dropFirst(2))
        if let holder = wildcards[rest] { return holder == certificate ? nil : holder }
        wildcards[rest] = certificate
        return nil
    }

    /// The certificate for a name; `nil` when no other than the first is for it.
    package func certificate(for name: String) -> Int? {
        let name = Self.normal(name)
        if let found = exact[name] { return found }
        guard let dot = name.firstIndex(of: "."), dot > name.startIndex else { return nil }
        return wildcards[String(name[name.index(after: dot)...])]
    }

    /// In lower case, without the dot that may end a name.
    private static func normal(_ name: String) -> String {
        let lower = name.lowercased()
        return lower.hasSuffix(".") ? String(lower.dropLast()) : lower
    }
}
