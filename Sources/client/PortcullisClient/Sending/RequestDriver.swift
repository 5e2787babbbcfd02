import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Drives ``RequestMachine`` for requests that are sent or signed here: has each of them proven,
/// and does what its answers ask for.
struct RequestDriver: Sendable {
    let configuration: PortcullisConfiguration
    let transport: any HTTPTransport
    let routes: RouteTable
    /// `nil` where no plan is fetched and nothing of routes is kept.
    let plans: PlanSource?
    let prover: Prover
    let hub: EventHub
    /// Whether sessions are opened. Never where others can read the secret: over plain HTTP, unless
    /// the gateway is on this machine.
    let usesSessions: Bool
    private let origins: Set<CanonicalRequest.Origin>

    /// - Parameters:
    ///   - configuration: which gateway, and what its routes ask.
    ///   - service: makes keys and signs.
    ///   - store: the one for this gateway's record.
    ///   - transport: carries requests.
    init(
        _ configuration: PortcullisConfiguration,
        service: any AttestationService,
        store: any EnrolmentStore,
        transport: any HTTPTransport
    ) {
        (self.configuration, self.transport) = (configuration, transport)
        hub = EventHub(configuration.log)
        routes = RouteTable(configuration)
        let calls = GatewayCalls(configuration, transport: transport)
        plans = PlanSource(configuration, calls: calls, routes: routes, events: hub)
        prover = Prover(
            configuration,
            service: service,
            store: store,
            transport: transport,
            events: hub
        )
        let urls = [configuration.endpoints] + configuration.origins
        origins = Set(urls.compactMap(CanonicalRequest.Origin.init))
        let gateway = CanonicalRequest.Origin(configuration.endpoints)
        usesSessions = configuration.usesSessions && gateway?.keepsSecrets == true
    }

    /// Whether a URL is one of the gateway's.
    func isOwn(_ url: URL) -> Bool { CanonicalRequest.Origin(url).map(origins.contains) ?? false }

    /// The life of a request; of the rest of it, after a redirect.
    func machine(
        for canonical: CanonicalRequest,
        _ patience: Patience? = nil
    ) -> RequestMachine {
        let limits = configuration.limits
        let request = canonical.request
        return RequestMachine(
            limits: limits,
            usesSessions: usesSessions,
            isRepeatable: RequestMachine.isRepeatable(request),
            patience: patience ?? Patience(limits, timeout: request.timeoutInterval)
        )
    }

    /// The life of a request that was signed here, or in an earlier process.
    func machine(goingOnWith signed: SignedRequest) -> RequestMachine {
        let limits = configuration.limits
        let request = signed.canonical.request
        return RequestMachine(
            limits: limits,
            usesSessions: usesSessions,
            isRepeatable: RequestMachine.isRepeatable(request),
            patience: signed.patience ?? Patience(limits, timeout: request.timeoutInterval),
            progress: signed.progress
        )
    }

    /// Learns from the answer to a request that something else has sent.
    func step(
        after response: HTTPURLResponse,
        to signed: SignedRequest,
        _ machine: inout RequestMachine
    ) async -> RequestMachine.Step {
        keepCookies(of: response, .network, to: signed.request, signed.canonical)
        let proven = ProvenRequest(
            request: signed.request,
            proof: signed.proof,
            deviceToken: signed.deviceToken,
            session: signed.session
        )
        let facts = facts(of: response, .network, to: signed.canonical)
        let step = await settle(facts, to: proven, signed.canonical, by: &machine)
        // After the effects, which may forget the older ones.
        await keepChallenge(of: response, .network, to: signed.canonical)
        return step
    }

    /// The request with what it is to carry, as far as that can be had.
    func prove(
        _ canonical: CanonicalRequest,
        _ content: ReplayableContent,
        by machine: inout RequestMachine
    ) async -> ProvenRequest {
        await prepareRoute(canonical, &machine)
        let knowledge = routes.knowledge(method: canonical.method, url: canonical.url)
        let want = machine.began(
            knowledge,
            isOwnOrigin: isOwn(canonical.url),
            observes: routes.observes(method: canonical.method, url: canonical.url)
        )
        let proven = await prover.proven(
            canonical,
            content,
            carrying: want,
            isHasty: !machine.waitsForKey,
            spending: &machine.patience
        )
        switch proven.proof {
        case .none(.otherOrigin), .none(.notAsked), .assertion, .session: break
        case .none(let absence): hub.send(.unproven(absence))
        }
        switch proven.deviceToken {
        case .notAsked, .sent: break
        case .failed, .keptBack: hub.send(.withoutDeviceToken(proven.deviceToken))
        }
        return proven
    }

    /// Has what an earlier process knew read, and the plan fetched where it is time for that.
    private func prepareRoute(
        _ canonical: CanonicalRequest,
        _ machine: inout RequestMachine
    ) async {
        guard let plans, isOwn(canonical.url) else { return }
        await machine.patience.wait(
            atMost: configuration.limits.planWait.seconds,
            by: configuration.clock
        ) { seconds in
            await plans.prepare(within: seconds) { [routes] in
                routes.knows(method: canonical.method, url: canonical.url)
            }
        }
    }

    /// What the head of an answer says. Only the gateway's own origins are believed, and no cache.
    func facts(
        of response: HTTPURLResponse,
        _ source: TransportAnswer.Source,
        to canonical: CanonicalRequest
    ) -> RequestMachine.Answer {
        var facts = RequestMachine.Answer(status: response.statusCode)
        guard isOwn(canonical.url), source == .network else { return facts }
        let value = { response.value(forHTTPHeaderField: $0) }
        if let own = OwnAnswer(response) {
            (facts.refusal, facts.lesson) = (own.refusal, own.lesson)
        } else if let field = value(OwnFields.next).flatMap(NextField.init) {
            (facts.next, facts.lesson) = (field.next, field.lesson)
            (facts.nextKeyID, facts.nextReason) = (field.keyID, field.reason)
        }
        if facts.refusal != nil {
            // Up to a second more: the field has whole seconds, and a crowd was told the same.
            facts.retryAfter = RetryAfter.seconds(in: response, now: configuration.clock.now)
                .map { $0 + configuration.random() }
        }
        return facts
    }

    /// Does what an answer asks for, keeps the challenge that came with it, and says what is next.
    func settle(
        _ facts: RequestMachine.Answer,
        to proven: ProvenRequest,
        _ canonical: CanonicalRequest,
        by machine: inout RequestMachine
    ) async -> RequestMachine.Step {
        if let refusal = facts.refusal { hub.send(.refused(refusal)) }
        let verdict = machine.answered(
            facts,
            to: proven.proof,
            deviceToken: proven.deviceToken,
            now: configuration.clock.now
        )
        for effect in verdict.effects { await perform(effect, proven, of: canonical) }
        return verdict.step
    }

    /// Waits where a step asks for it.
    ///
    /// - Returns: whether the request is sent again, now.
    /// - Throws: `CancellationError` when the task was cancelled.
    func waits(
        for step: RequestMachine.Step,
        _ machine: inout RequestMachine
    ) async throws -> Bool {
        let clock = configuration.clock
        switch step {
        case .deliver: return false
        case .again: return true
        case .againAfter(let time):
            try await machine.patience.wait(atMost: .infinity, by: clock) { _ in
                try await clock.wait(until: time)
            }
            return true
        }
    }

    /// Keeps the challenge that came with an answer.
    func keepChallenge(
        of response: HTTPURLResponse,
        _ source: TransportAnswer.Source,
        to canonical: CanonicalRequest
    ) async {
        guard isOwn(canonical.url), source == .network,
            let challenge = response.value(forHTTPHeaderField: OwnFields.challenge)
        else { return }
        await prover.challenges.add(challenge)
    }

    /// Keeps the cookies of an answer to a request whose cookies were signed: the system neither
    /// sends nor keeps any for it.
    func keepCookies(
        of response: HTTPURLResponse,
        _ source: TransportAnswer.Source,
        to sent: URLRequest,
        _ canonical: CanonicalRequest
    ) {
        guard source == .network, canonical.request.httpShouldHandleCookies,
            !sent.httpShouldHandleCookies
        else { return }
        transport.keepCookies(of: response, to: sent)
    }

    private func perform(
        _ effect: RequestMachine.Effect,
        _ proven: ProvenRequest,
        of canonical: CanonicalRequest
    ) async {
        let (method, url) = (canonical.method, canonical.url)
        switch effect {
        case .learn(let lesson):
            guard let route = routes.learn(lesson, method: method, url: url) else { return }
            await plans?.doubt()
            hub.send(.routeLearned(route: route.description))
        case .expectStrict: routes.expectStrict(method: method, url: url)
        case .expectUsualPlaces:
            routes.amend(method: method, url: url) {
                ($0.fields, $0.challengePointer) = (ProofFieldNames(), nil)
            }
        case .expectAssertions: routes.amend(method: method, url: url) { $0.accepts = [.assertion] }
        case .expectDeviceToken:
            routes.amend(method: method, url: url) { $0.needsDeviceToken = true }
        case .forgetKey(let keyID, let reason):
            await prover.enroller.forget(keyID, reason: reason)
            await prover.sessions.forget(keyID: keyID)
        case .forgetChallenges: await prover.challenges.clear()
        case .forgetSession:
            if let session = proven.session { await prover.sessions.forget(session) }
        case .enrol:
            let enroller = prover.enroller
            Task { _ = await enroller.keyID(within: 0) }
        }
    }
}
