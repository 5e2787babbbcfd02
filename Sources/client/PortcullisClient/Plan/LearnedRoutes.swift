import Crypto
import Foundation

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

        /// By which it is known in a file: a path may say who the user is.
        var digest: String {
            let digest = SHA256.hash(data: Data("\(method)\n\(host)\n\(path)".utf8))
            return Data(digest.prefix(16)).base64EncodedString()
        }

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
        /// When that was said.
        var saying = Saying()
        fileprivate var lastUse: UInt64
    }

    /// When something was said of a route: in which order, plans included, and at what time.
    struct Saying: Hashable, Sendable {
        var order: UInt64 = 0
        var time = Date.distantPast
    }

    private var entries: [Route: Entry] = [:]
    /// What an earlier process has learned, by the routes' digests, as long as it is not used.
    private var remembered: [String: RouteFile.Lesson] = [:]
    private var uses: UInt64 = 0
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    var count: Int { entries.count }

    /// What was learned of a route; `nil` for nothing at all.
    mutating func entry(for route: Route) -> Entry? {
        uses += 1
        if entries[route] == nil, !remembered.isEmpty,
            let lesson = remembered.removeValue(forKey: route.digest)
        {
            let order = lesson.isNewer ? RouteFile.newerOrder : 0
            let saying = Saying(order: order, time: lesson.time)
            learn(lesson.requirement, observes: lesson.observes, saying: saying, for: route)
        }
        entries[route]?.lastUse = uses
        return entries[route]
    }

    /// Takes over what an earlier process has learned.
    mutating func remember(_ lessons: [RouteFile.Lesson]) {
        for lesson in lessons.prefix(limit) { remembered[lesson.digest] = lesson }
    }

    /// What is known of all routes, the newest first.
    ///
    /// - plan: the order of the plan.
    func lessons(plan: UInt64) -> [RouteFile.Lesson] {
        let own = entries.sorted { $0.value.lastUse > $1.value.lastUse }.map { route, entry in
            RouteFile.Lesson(
                digest: route.digest,
                requirement: entry.requirement,
                observes: entry.observes,
                isNewer: entry.saying.order >= plan,
                time: entry.saying.time
            )
        }
        return Array((own + remembered.values).prefix(limit))
    }

    /// Remembers what a route asks.
    mutating func learn(
        _ requirement: SigningRequirement?,
        observes: Bool = false,
        saying: Saying = Saying(),
        for route: Route
    ) {
        guard limit > 0 else { return }
        uses += 1
        if entries[route] == nil, entries.count >= limit,
            let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            entries[oldest.key] = nil
        }
        entries[route] = Entry(
            requirement: requirement,
            observes: observes,
            saying: saying,
            lastUse: uses
        )
    }

    mutating func forget(_ route: Route) { entries[route] = nil }

    mutating func clear() { (entries, remembered) = ([:], [:]) }
}
