public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension PortcullisSession {
    /// Signs a request that something else sends: Alamofire, a background session, a library.
    ///
    /// This call begins the enrolment of the device's key, where there is none and it is known that
    /// the route asks for a proof: from the plan, from an earlier answer, or from
    /// ``PortcullisConfiguration/defaultRequirement``. It waits for the key for
    /// ``PortcullisLimits/enrolmentWait``, and then returns the request without a proof:
    /// ``SentProof/Absence/enrolling``. The enrolment goes on by itself, and a later call has the
    /// key. Where nothing is known of the route, the request is ``SentProof/Absence/routeUnknown``
    /// and no enrolment begins: its answer says what the route asks, to ``learn(from:to:)`` or
    /// ``signAgain(_:after:)``. An app that calls neither ships a plan. ``prewarm()`` begins the
    /// enrolment in any case.
    ///
    /// Send it soon, once, and as it stands. Where a rule's counter is `strict`, send one at a
    /// time: the session does not know when its answer has come. Hand each answer to
    /// ``signAgain(_:after:)``: where the plan is outdated, that is how the next request is right.
    ///
    /// Cookies that the route signs are those of this session's transport, and its request takes no
    /// others. Where the sender has another cookie storage, write the field `Cookie` yourself. On
    /// Linux, URLSession sends the cookies of its own storage whatever a request says: give the
    /// sender a configuration whose `httpCookieStorage` is `nil`.
    ///
    /// Its cache policy is one by which no cache answers: what the gateway said to an earlier
    /// request would be obeyed again.
    ///
    /// - Parameter request: with its content, if any. One for a `wss:` or `ws:` URL is the
    ///   handshake of a WebSocket, a GET without content. A stream is replaced by one of a
    ///   temporary file, which lives as long as the returned value.
    /// - Returns: the request, to be sent as it stands.
    /// - Throws: a ``PortcullisError``; nothing because of a proof.
    public func sign(_ request: URLRequest) async throws -> SignedRequest {
        let limit = configuration.limits.spooledBytes
        let content = try await ReplayableContent(of: request, spooledMax: limit)
        return try await signed(request, content, attached: true)
    }

    /// Signs a request that a file goes with, as for a background upload.
    ///
    /// - Parameters:
    ///   - request: everything but the content.
    ///   - file: must not change until the answer is there.
    /// - Returns: the request, to be sent as it stands, with the file.
    /// - Throws: a ``PortcullisError``; nothing because of a proof.
    public func sign(_ request: URLRequest, fromFile file: URL) async throws -> SignedRequest {
        try await signed(request, ReplayableContent(file: file), attached: false)
    }

    /// Learns from the answer to a signed request, and signs it again where that helps.
    ///
    /// Call it with each answer, also with good ones: they bring the next challenge.
    ///
    /// - Returns: what to send next; `nil` when the answer is the caller's.
    /// - Throws: `CancellationError`, or ``PortcullisError/contentChanged`` where it is a file that
    ///   was changed.
    public func signAgain(
        _ signed: SignedRequest,
        after response: HTTPURLResponse
    ) async throws -> SignedRequest? {
        var machine = driver.machine(goingOnWith: signed)
        let step = await driver.step(after: response, to: signed, &machine)
        guard try await driver.waits(for: step, &machine) else { return nil }
        try signed.content.checkUnchanged()
        let attached = signed.request.httpBody != nil || signed.request.httpBodyStream != nil
        return await self.signed(
            signed.canonical,
            signed.content,
            by: &machine,
            attached: attached
        )
    }

    /// Learns from the answer to a signed request that is not signed again: its sender gave up, or
    /// has a rule of its own for this answer.
    ///
    /// Hand an answer either in here or to ``signAgain(_:after:)``, which learns the same.
    public func learn(from response: HTTPURLResponse, to signed: SignedRequest) async {
        var machine = driver.machine(goingOnWith: signed)
        _ = await driver.step(after: response, to: signed, &machine)
    }

    /// Whether the origin may have run a signed request that was refused: the proof came before, in
    /// a copy that something on the way has made, and the answer to that one is lost. A background
    /// session does that, for one.
    ///
    /// ``signAgain(_:after:)`` returns `nil` then for a request that may run once only. One whose
    /// method is idempotent, or that has an `Idempotency-Key`, is signed again.
    public func mayHaveRun(_ signed: SignedRequest, after response: HTTPURLResponse) -> Bool {
        var machine = driver.machine(goingOnWith: signed)
        let facts = driver.facts(of: response, .network, to: signed.canonical)
        _ = machine.answered(facts, to: signed.proof, now: configuration.clock.now)
        return machine.mayHaveRun
    }

    /// Signs the handshake of a WebSocket and makes a task of it, which is not yet resumed.
    ///
    /// A rule judges the handshake alone, not the messages. It is sent once: where it is refused,
    /// the task fails, and its `response` goes to ``signAgain(_:after:)``, which says what to open
    /// next. The response to a handshake that was admitted goes there too.
    ///
    /// - Parameters:
    ///   - request: a GET for a `wss:` or `ws:` URL, without content.
    ///   - session: which makes the task. Its delegate must follow no redirects: a proof stands for
    ///     one target.
    /// - Returns: the task, and what was signed.
    /// - Throws: a ``PortcullisError``; nothing because of a proof.
    public func webSocketTask(
        for request: URLRequest,
        with session: URLSession
    ) async throws -> (URLSessionWebSocketTask, SignedRequest) {
        let signed = try await sign(request)
        guard ["ws", "wss"].contains(signed.canonical.url.scheme?.lowercased()) else {
            throw PortcullisError.urlUnfit
        }
        return (session.webSocketTask(with: signed.request), signed)
    }

    private func signed(
        _ request: URLRequest,
        _ content: ReplayableContent,
        attached: Bool
    ) async throws -> SignedRequest {
        let isHandshake = attached && content.isEmpty
        guard let canonical = CanonicalRequest(request, isHandshake: isHandshake) else {
            throw PortcullisError.urlUnfit
        }
        var machine = driver.machine(for: canonical)
        return await signed(canonical, content, by: &machine, attached: attached)
    }

    private func signed(
        _ canonical: CanonicalRequest,
        _ content: ReplayableContent,
        by machine: inout RequestMachine,
        attached: Bool
    ) async -> SignedRequest {
        let proven = await driver.prove(canonical, content, by: &machine)
        proven.lease?.end()
        var request = proven.request
        if driver.isOwn(canonical.url),
            request.cachePolicy != .reloadIgnoringLocalAndRemoteCacheData
        {
            request.cachePolicy = .reloadIgnoringLocalCacheData
        }
        switch content.content {
        case .data(let data) where attached: request.httpBody = data
        case .file(let url) where attached: request.httpBodyStream = InputStream(url: url)
        case .none, .data, .file: break
        }
        return SignedRequest(
            proven,
            request: request,
            canonical: canonical,
            content: content,
            machine: machine
        )
    }
}

#if canImport(DeviceCheck) && canImport(Security)
    extension PortcullisSession {
        /// A session of an app with its gateway, as most apps need it: Apple's service, and a
        /// record in the Keychain.
        ///
        /// - Parameters:
        ///   - gateway: as `https://api.example.com`.
        ///   - plan: what routes ask, as `portcullis plan` wrote it; `nil` to learn it from
        ///     answers.
        public convenience init(gateway: URL, plan: SigningPlan? = nil) {
            var configuration = PortcullisConfiguration(gateway: gateway)
            configuration.plan = plan
            self.init(configuration, service: AppAttestService(), store: KeychainEnrolmentStore())
        }
    }
#endif
