import Foundation

/// What each route asks: by what was learned, else by the plan, else by what the app assumes.
final class RouteBook: Sendable {
    /// What is known of a request's route.
    enum Knowledge: Hashable, Sendable {
        case asks(SigningRequirement)
        case asksNothing
        case unknown
    }

    private let plan: SigningPlan?
    private let assumed: SigningRequirement?
    private let learned: Guarded<LearnedRoutes>

    init(_ configuration: PortcullisConfiguration) {
        plan = configuration.plan
        assumed = configuration.assumed
        learned = Guarded(LearnedRoutes(limit: configuration.limits.routesLearned))
    }

    func knowledge(method: String, url: URL) -> Knowledge {
        guard let place = RequestPlace(url) else { return .unknown }
        let route = LearnedRoutes.Route(method: method, place: place)
        if let entry = learned.withLock({ $0.entry(for: route) }) {
            return entry.requirement.map(Knowledge.asks) ?? .asksNothing
        }
        return planned(method, place)
    }

    /// Learns from an answer.
    ///
    /// - Returns: the route, when this was news.
    func learn(_ lesson: RouteLesson, method: String, url: URL) -> LearnedRoutes.Route? {
        guard let place = RequestPlace(url) else { return nil }
        let known = requirement(method: method, url: url)
        let requirement = lesson.requirement(over: known)
        guard requirement != known else { return nil }
        let route = LearnedRoutes.Route(method: method, place: place)
        learned.withLock { $0.learn(requirement, for: route) }
        return route
    }

    /// Changes what is known of a route.
    func amend(method: String, url: URL, _ body: (inout SigningRequirement) -> Void) {
        guard let place = RequestPlace(url),
            var requirement = requirement(method: method, url: url)
        else { return }
        body(&requirement)
        let route = LearnedRoutes.Route(method: method, place: place)
        learned.withLock { $0.learn(requirement, for: route) }
    }

    /// Whether a rule of the plan takes sessions, so that one may be opened ahead.
    var takesSessions: Bool {
        plan?.rules.contains { $0.requirement?.accepts.contains(.session) ?? false } ?? false
    }

    private func requirement(method: String, url: URL) -> SigningRequirement? {
        guard case .asks(let requirement) = knowledge(method: method, url: url) else { return nil }
        return requirement
    }

    private func planned(_ method: String, _ place: RequestPlace) -> Knowledge {
        switch plan?.answer(method: method, place: place) ?? .silent {
        case .rule(_, let requirement), .unmatched(let requirement): .asks(requirement)
        case .off: .asksNothing
        case .silent: assumed.map(Knowledge.asks) ?? .unknown
        }
    }
}
