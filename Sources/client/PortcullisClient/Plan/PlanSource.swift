import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Fetches the plan beside requests, and keeps it in a file with what was learned of routes, so
/// that both survive the process.
///
/// No request fails because of it. A request to a route of which nothing is known waits for the
/// first fetch, for ``PortcullisLimits/planWait`` at most, counted from the fetch's beginning.
actor PlanSource {
    private let configuration: PortcullisConfiguration
    private let calls: GatewayCalls
    private let routes: RouteTable
    private let events: EventHub
    private let file: RouteFile?
    /// Whether the gateway is asked. Never where others can write the answer: over plain HTTP,
    /// unless the gateway is on this machine.
    private let fetches: Bool
    private var held: RouteFile.FetchedPlan?
    private var loading: SharedWork<Void>?
    private var fetching: (work: SharedWork<Void>, began: Date)?
    /// Until when the gateway is not asked.
    private var holdUntil = Date.distantPast
    private var failures = 0
    private var saving: Task<Void, Never>?
    private var needsSaving = false
    private var lastSaved = Date.distantPast
    private var isClosed = false

    /// How long a plan is good that does not say so, in seconds.
    static let usualAge: Double = 3600
    /// What its word about that is cut to, in seconds.
    static let ages: ClosedRange<Double> = 60...86_400
    /// The least time between two fetches because an answer said something else, in seconds.
    static let doubtAge: Double = 60
    /// The first time that the gateway is not asked after a failure, in seconds. It doubles with
    /// each, up to an hour.
    static let failureHold: Double = 30
    static let failureHoldMax: Double = 3600
    /// The longest `Retry-After` that is obeyed, in seconds.
    static let holdMax: Double = 86_400
    /// The least time between two writes of the file, in seconds.
    private static let savingPause: Double = 5
    /// How old a confirmed plan in the file may be, in seconds.
    static let savingAge: Double = 86_400
    /// How far the gateway's clock may be ahead of this device's, in seconds.
    private static let aheadMax: Double = 86_400
    private static let tagBytesMax = 256

    /// `nil` where the plan is not fetched and nothing outlives the process.
    init?(
        _ configuration: PortcullisConfiguration,
        calls: GatewayCalls,
        routes: RouteTable,
        events: EventHub
    ) {
        let origin = CanonicalRequest.Origin(configuration.endpoints)
        fetches = configuration.fetchesPlan && origin?.keepsSecrets == true
        file = configuration.routeMemory.file(of: configuration.endpoints).map {
            RouteFile(
                url: $0,
                gateway: configuration.endpoints.absoluteString,
                bytesMax: configuration.limits.planBytes
            )
        }
        guard fetches || file != nil else { return nil }
        (self.configuration, self.calls) = (configuration, calls)
        (self.routes, self.events) = (routes, events)
    }

    private var now: Date { configuration.clock.now }

    /// Reads the file and fetches the plan where it is time for that.
    ///
    /// - Parameters:
    ///   - seconds: how long the caller can wait.
    ///   - isKnown: whether something is known of the caller's route.
    func prepare(within seconds: Double, isKnown: @Sendable () -> Bool) async {
        let end = now.addingTimeInterval(seconds)
        let loading = self.loading ?? load()
        if !loading.hasEnded { await wait(for: loading, until: end) }
        let fetch = fetch()
        guard let fetch, !isKnown() else { return }
        let longest = configuration.limits.planWait.seconds
        await wait(for: fetch.work, until: min(end, fetch.began.addingTimeInterval(longest)))
    }

    /// What an answer taught is something else than the plan says: another plan may be there.
    func doubt() {
        save()
        let soon = now.addingTimeInterval(Self.doubtAge)
        if failures == 0, holdUntil > soon { holdUntil = soon }
    }

    /// Asks no more, and writes what is not yet written.
    func close() async {
        isClosed = true
        saving?.cancel()
        await saving?.value
    }

    private func wait(for work: SharedWork<Void>, until end: Date) async {
        _ = await work.value(until: end, by: configuration.clock)
    }

    // MARK: The gateway

    /// The fetch that is under way, or that is due.
    private func fetch() -> (work: SharedWork<Void>, began: Date)? {
        guard fetches, !isClosed else { return nil }
        if let fetching { return fetching }
        // A hold that ends later than any was made before the clock was set back.
        guard now >= holdUntil || holdUntil.timeIntervalSince(now) > Self.holdMax else {
            return nil
        }
        let begun = (work: SharedWork<Void>(), began: now)
        fetching = begun
        // Answers that come while it is fetched are newer.
        let order = routes.nextOrder()
        Task {
            let answer = await calls.plan(unlike: held?.tag, atMost: configuration.limits.planBytes)
            fetching = nil
            fetched(answer, order)
            begun.work.end(with: ())
        }
        return begun
    }

    private func fetched(_ answer: GatewayCalls.PlanAnswer, _ order: UInt64) {
        switch answer {
        case .plan(let data, let response):
            failures = 0
            adopt(data, response, order: order)
        case .unchanged(let response):
            failures = 0
            // Before the file takes it for too old.
            if let held, now.timeIntervalSince(held.time) > Self.savingAge { save() }
            held?.time = now
            if !Self.isCached(response) { routes.confirmPlan(order) }
            hold(for: Self.age(response))
        case .failed(let seconds):
            failures = min(failures + 1, 16)
            let delay = min(Self.failureHold * Double(1 << (failures - 1)), Self.failureHoldMax)
            hold(for: min(max(delay, seconds ?? 0), Self.holdMax))
            events.send(.planUnavailable(until: holdUntil))
        }
    }

    private func adopt(_ data: Data, _ response: HTTPURLResponse, order: UInt64) {
        hold(for: Self.age(response))
        let served = response.value(forHTTPHeaderField: "Date").flatMap(FieldDate.date)
        // A cache, or a gateway of a fleet, that has an older one than this. A date that is yet to
        // come was written by a clock that was ahead, and would keep all later plans away.
        if let served, let newest = held?.served, served < newest,
            newest.timeIntervalSince(now) < Self.aheadMax
        {
            return
        }
        let plan: SigningPlan
        do {
            plan = try SigningPlan(json: data)
        } catch {
            hold(for: Self.usualAge)
            return events.send(.planIgnored(error))
        }
        let tag = response.value(forHTTPHeaderField: "ETag").flatMap(Self.fit)
        held = RouteFile.FetchedPlan(
            json: String(decoding: data, as: UTF8.self),
            tag: tag,
            served: served,
            time: now
        )
        // One out of a cache is older than what answers said.
        routes.adopt(plan, order: Self.isCached(response) ? 0 : order)
        events.send(.planFetched)
        save()
    }

    /// A tag that can go into a field; `nil` for another.
    private static func fit(_ tag: String) -> String? {
        let isFit = tag.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return isFit && tag.utf8.count <= tagBytesMax ? tag : nil
    }

    private func hold(for seconds: Double) { holdUntil = now.addingTimeInterval(seconds) }

    private static func isCached(_ response: HTTPURLResponse) -> Bool { cachedFor(response) > 0 }

    /// How long a cache has had it, in seconds (RFC 9111 §5.1).
    private static func cachedFor(_ response: HTTPURLResponse) -> Double {
        response.value(forHTTPHeaderField: "Age").flatMap { Int($0) }.map { Double($0) } ?? 0
    }

    /// For how long it is good, in seconds (RFC 9111 §5.2.2.1).
    private static func age(_ response: HTTPURLResponse) -> Double {
        let directives = (response.value(forHTTPHeaderField: "Cache-Control") ?? "")
            .split(separator: ",")
            .map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
        let stated = directives.first { $0.hasPrefix("max-age=") }
            .flatMap { Int($0.dropFirst("max-age=".count)) }
        let age = stated.map { Double($0) - cachedFor(response) } ?? usualAge
        return min(max(age, ages.lowerBound), ages.upperBound)
    }

    // MARK: The file

    /// Reads the file, once.
    private func load() -> SharedWork<Void> {
        let work = SharedWork<Void>()
        loading = work
        guard let file else {
            work.end(with: ())
            return work
        }
        Task {
            let read = try? await BlockingWork().step { file.read() }
            if let kept = read ?? nil { take(kept) }
            work.end(with: ())
        }
        return work
    }

    private func take(_ kept: RouteFile.Kept) {
        routes.remember(kept.lessons(at: now))
        guard fetches, let plan = kept.plan(at: now),
            let read = try? SigningPlan(json: Data(plan.json.utf8))
        else { return }
        held = RouteFile.FetchedPlan(
            json: plan.json,
            tag: plan.tag.flatMap(Self.fit),
            served: plan.served,
            time: plan.time
        )
        routes.adopt(read, order: RouteFile.planOrder)
    }

    /// Writes the file, soon. A device on which it can't be written asks again after each start.
    private func save() {
        guard file != nil else { return }
        needsSaving = true
        guard saving == nil, !isClosed else { return }
        saving = Task {
            while needsSaving {
                let pause = lastSaved.addingTimeInterval(Self.savingPause)
                // A cancelled wait ends at once, and what there is is written.
                if lastSaved <= now { try? await configuration.clock.wait(until: pause) }
                needsSaving = false
                lastSaved = now
                await write()
            }
            saving = nil
        }
    }

    private func write() async {
        guard let file else { return }
        let (plan, lessons) = (held, routes.lessons())
        // Not in this task, which may have been cancelled.
        let writing = Task {
            try? await BlockingWork().step { file.write(plan, lessons) }
        }
        await writing.value
    }
}
