import Crypto
import Foundation

/// What each route asks: by what was learned, else by the plan, else by the app's default.
final class RouteTable: Sendable {
    /// What is known of a request's route.
    enum Knowledge: Hashable, Sendable {
        case asks(SigningRequirement)
        case asksNothing
        case unknown
    }

    /// The plan, and its place in the order in which things were said. The app's own comes before
    /// all answers.
    private struct Planned {
        var plan: SigningPlan?
        var order: UInt64 = 0
    }

    private let planned: Guarded<Planned>
    /// The last place in that order. Those of a file come before.
    private let lastOrder = Guarded(RouteFile.newerOrder)
    private let defaultRequirement: SigningRequirement?
    private let learned: Guarded<LearnedRoutes>
    /// Routes where a counter came too late, and until when they count as strict.
    private let strict = Guarded<[LearnedRoutes.Route: Date]>([:])
    private let clock: any ClientClock
    private let limit: Int

    /// How long that is, in seconds. A window that was overrun once, or an assertion that came
    /// twice, says nothing about the rule.
    static let strictTime: Double = 600

    init(_ configuration: PortcullisConfiguration) {
        planned = Guarded(Planned(plan: configuration.plan))
        defaultRequirement = configuration.defaultRequirement
        clock = configuration.clock
        limit = configuration.limits.routesLearned
        learned = Guarded(LearnedRoutes(limit: limit))
    }

    func knowledge(method: String, url: URL) -> Knowledge {
        guard let place = RequestPlace(url) else { return .unknown }
        let knowledge = lasting(method, place)
        guard case .asks(var requirement) = knowledge,
            isStrict(LearnedRoutes.Route(method: method, place: place))
        else { return knowledge }
        requirement.counter = .strict
        return .asks(requirement)
    }

    /// Counts a route as strict for a while.
    func expectStrict(method: String, url: URL) {
        guard limit > 0, let place = RequestPlace(url) else { return }
        let now = clock.now
        strict.withLock { strict in
            strict = strict.filter { Self.isOpen($0.value, now) }
            if strict.count >= limit, let first = strict.min(by: { $0.value < $1.value }) {
                strict[first.key] = nil
            }
            let route = LearnedRoutes.Route(method: method, place: place)
            strict[route] = now.addingTimeInterval(Self.strictTime)
        }
    }

    private func isStrict(_ route: LearnedRoutes.Route) -> Bool {
        let now = clock.now
        return strict.withLock { $0[route].map { Self.isOpen($0, now) } ?? false }
    }

    /// One that ends later than any was made before the clock was set back.
    private static func isOpen(_ end: Date, _ now: Date) -> Bool {
        end > now && end.timeIntervalSince(now) <= strictTime
    }

    /// What is known but for what passes: what was said last, by an answer or a plan.
    private func lasting(_ method: String, _ place: RequestPlace) -> Knowledge {
        let route = LearnedRoutes.Route(method: method, place: place)
        let entry = learned.withLock { $0.entry(for: route) }
        let planned = planned.withLock(\.self)
        if let entry, entry.saying.order >= planned.order { return knowledge(of: entry) }
        switch planned.plan?.answer(method: method, place: place) ?? .silent {
        case .rule(_, let requirement), .unmatched(let requirement): return .asks(requirement)
        case .off: return .asksNothing
        case .silent:
            if let entry { return knowledge(of: entry) }
            return defaultRequirement.map(Knowledge.asks) ?? .unknown
        }
    }

    private func knowledge(of entry: LearnedRoutes.Entry) -> Knowledge {
        entry.requirement.map(Knowledge.asks) ?? .asksNothing
    }

    // MARK: Plans

    /// The next place in the order in which things are said.
    func nextOrder() -> UInt64 {
        lastOrder.withLock { order in
            order += 1
            return order
        }
    }

    /// Takes a plan in the place of the one before.
    func adopt(_ plan: SigningPlan, order: UInt64) {
        planned.withLock { $0 = Planned(plan: plan, order: order) }
    }

    /// The gateway has said again what the plan says.
    func confirmPlan(_ order: UInt64) { planned.withLock { $0.order = order } }

    /// Whether there is a plan, or something was learned of a request's route.
    func knows(method: String, url: URL) -> Bool {
        if planned.withLock({ $0.plan != nil }) { return true }
        guard let place = RequestPlace(url) else { return false }
        let route = LearnedRoutes.Route(method: method, place: place)
        return learned.withLock { $0.entry(for: route) } != nil
    }

    /// Takes over what an earlier process has learned.
    func remember(_ lessons: [RouteFile.Lesson]) { learned.withLock { $0.remember(lessons) } }

    /// What the next process is to know.
    func lessons() -> [RouteFile.Lesson] {
        let order = planned.withLock(\.order)
        return learned.withLock { $0.lessons(plan: order) }
    }

    // MARK: Lessons

    private func saying() -> LearnedRoutes.Saying {
        LearnedRoutes.Saying(order: nextOrder(), time: clock.now)
    }

    /// Learns from an answer.
    ///
    /// - Returns: the route, when this was news.
    func learn(_ lesson: RouteLesson, method: String, url: URL) -> LearnedRoutes.Route? {
        guard let place = RequestPlace(url) else { return nil }
        let known = requirement(method, place)
        let requirement = lesson.requirement(over: known)
        let route = LearnedRoutes.Route(method: method, place: place)
        let isNews = requirement != known
        guard isNews || lesson.observes != observes(route) else { return nil }
        let saying = saying()
        learned.withLock {
            $0.learn(requirement, observes: lesson.observes, saying: saying, for: route)
        }
        return isNews ? route : nil
    }

    /// Changes what is known of a route.
    func amend(method: String, url: URL, _ body: (inout SigningRequirement) -> Void) {
        guard let place = RequestPlace(url),
            var requirement = requirement(method, place)
        else { return }
        body(&requirement)
        let route = LearnedRoutes.Route(method: method, place: place)
        let (observes, saying) = (observes(route), saying())
        learned.withLock {
            $0.learn(requirement, observes: observes, saying: saying, for: route)
        }
    }

    /// Whether the rule of a request's route only observes, as the gateway said last. No plan says
    /// so: a rule begins to enforce without a release of the app.
    func observes(method: String, url: URL) -> Bool {
        RequestPlace(url).map { observes(LearnedRoutes.Route(method: method, place: $0)) } ?? false
    }

    private func observes(_ route: LearnedRoutes.Route) -> Bool {
        learned.withLock { $0.entry(for: route)?.observes ?? false }
    }

    /// Whether a rule of the plan takes sessions, so that one may be opened ahead.
    var takesSessions: Bool {
        planned.withLock(\.plan)?.rules.contains {
            $0.requirement?.accepts.contains(.session) ?? false
        } ?? false
    }

    private func requirement(_ method: String, _ place: RequestPlace) -> SigningRequirement? {
        guard case .asks(let requirement) = lasting(method, place) else { return nil }
        return requirement
    }
}

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
}
