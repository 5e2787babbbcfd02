/// What routes were learned to ask, bounded: the one that was used longest ago gives way.
struct LearnedRoutes: Sendable {
    /// A host, a method, and a path whose segments that look like identifiers are alike.
    struct Route: Hashable, Sendable, CustomStringConvertible {
        let host: String
        let method: String
        let path: String

        init(method: String, place: RequestPlace) {
            host = place.host
            self.method = method
            path = "/" + place.segments.map(Self.shape).joined(separator: "/")
        }

        var description: String { "\(method) \(host)\(path)" }

        /// `*` for a number, a hexadecimal text or a UUID, and for what is longer than a name.
        private static func shape(_ segment: [UInt8]) -> String {
            let text = String(decoding: segment, as: UTF8.self)
            let hasDigit = text.utf8.contains { (0x30...0x39).contains($0) }
            let isHex = text.allSatisfy { $0.isHexDigit || $0 == "-" }
            let isNumber = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
            let looksLikeID =
                isNumber || hasDigit && isHex && text.utf8.count >= 8 || text.utf8.count > 24
            return looksLikeID ? "*" : text
        }
    }

    /// What is known of a route.
    struct Entry: Hashable, Sendable {
        /// What it asks; `nil` for nothing.
        var requirement: SigningRequirement?
        /// Whether its rule only observes, by the last answer that spoke of it.
        var observes: Bool
        fileprivate var lastUse: UInt64
    }

    private var entries: [Route: Entry] = [:]
    private var uses: UInt64 = 0
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    var count: Int { entries.count }

    /// What was learned of a route; `nil` for nothing at all.
    mutating func entry(for route: Route) -> Entry? {
        uses += 1
        entries[route]?.lastUse = uses
        return entries[route]
    }

    /// Remembers what a route asks.
    mutating func learn(
        _ requirement: SigningRequirement?,
        observes: Bool = false,
        for route: Route
    ) {
        guard limit > 0 else { return }
        uses += 1
        if entries[route] == nil, entries.count >= limit,
            let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            entries[oldest.key] = nil
        }
        entries[route] = Entry(requirement: requirement, observes: observes, lastUse: uses)
    }

    mutating func forget(_ route: Route) { entries[route] = nil }

    mutating func clear() { entries = [:] }
}
