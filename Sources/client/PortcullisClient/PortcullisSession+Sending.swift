public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// What has to hold before a request is sent.
///
/// May grow: a `switch` over it has an `@unknown default`.
#if hasAttribute(nonexhaustive)
    @nonexhaustive(warn)
#endif
public enum SendingCondition: Hashable, Sendable {
    /// Nothing: what can't be proven is sent without a proof, and the gateway's rule decides.
    case nothing
    /// The request carries a proof. Without one no byte of it leaves, neither its content nor its
    /// head, and the call throws ``PortcullisError/proofUnavailable(_:)``.
    ///
    /// A route of which nothing is known can't be asked either: ``PortcullisConfiguration`` needs a
    /// plan, or a ``PortcullisConfiguration/defaultRequirement``.
    case proof
}

extension PortcullisSession {
    /// Sends a request and collects its answer.
    ///
    /// - Parameters:
    ///   - request: with its content, if any, in `httpBody` or `httpBodyStream`. A stream is put
    ///     into a temporary file first.
    ///   - condition: what has to hold before it is sent, at each try and each redirect.
    ///   - delegate: hears of the tasks that send it, one for each try and each target of a
    ///     redirect, as ``TransferProgress`` does.
    /// - Returns: the content, at most ``PortcullisLimits/answerBytes``, and the head.
    /// - Throws: what the transport throws, or a ``PortcullisError``; because of a proof only with
    ///   the condition ``SendingCondition/proof``.
    public func data(
        for request: URLRequest,
        requiring condition: SendingCondition = .nothing,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, ProvenResponse) {
        try await collected(bytes(for: request, requiring: condition, delegate: delegate))
    }

    /// Sends a request with a file as its content, which is hashed and sent in pieces.
    ///
    /// - Parameters:
    ///   - request: everything but the content.
    ///   - file: must not change until the answer is there. A change between two tries is noticed:
    ///     ``PortcullisError/contentChanged``.
    ///   - condition: what has to hold before it is sent, at each try and each redirect.
    ///   - delegate: hears of the tasks that send it, one for each try and each target of a
    ///     redirect, as ``TransferProgress`` does.
    /// - Returns: the answer's content, at most ``PortcullisLimits/answerBytes``, and its head.
    /// - Throws: what the transport throws, or a ``PortcullisError``; because of a proof only with
    ///   the condition ``SendingCondition/proof``.
    public func upload(
        for request: URLRequest,
        fromFile file: URL,
        requiring condition: SendingCondition = .nothing,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, ProvenResponse) {
        let content = try await ReplayableContent(file: file)
        return try await collected(
            exchange(request, content, delegate: delegate, requiring: condition)
        )
    }

    /// Sends a request with content in memory.
    ///
    /// - Parameters:
    ///   - request: everything but the content; what it has of that is not sent.
    ///   - content: the content.
    ///   - condition: what has to hold before it is sent, at each try and each redirect.
    ///   - delegate: hears of the tasks that send it, one for each try and each target of a
    ///     redirect, as ``TransferProgress`` does.
    /// - Returns: the answer's content, at most ``PortcullisLimits/answerBytes``, and its head.
    /// - Throws: what the transport throws, or a ``PortcullisError``; because of a proof only with
    ///   the condition ``SendingCondition/proof``.
    public func upload(
        for request: URLRequest,
        from content: Data,
        requiring condition: SendingCondition = .nothing,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, ProvenResponse) {
        let content = ReplayableContent(content)
        return try await collected(
            exchange(request, content, delegate: delegate, requiring: condition)
        )
    }

    /// Gets what a URL stands for.
    ///
    /// - Returns: the content, at most ``PortcullisLimits/answerBytes``, and the head.
    /// - Throws: what the transport throws, or a ``PortcullisError``; nothing because of a proof.
    public func data(from url: URL) async throws -> (Data, ProvenResponse) {
        try await data(for: URLRequest(url: url))
    }

    /// Sends a request and writes its answer to a file, piece by piece.
    ///
    /// - Parameters:
    ///   - request: as for ``data(for:requiring:delegate:)``.
    ///   - condition: what has to hold before it is sent, at each try and each redirect.
    ///   - delegate: hears of the tasks that send it, one for each try and each target of a
    ///     redirect, as ``TransferProgress`` does.
    /// - Returns: a file in the temporary directory, which is the caller's to move or delete, and
    ///   the head. The file has at most ``PortcullisLimits/downloadBytes``.
    /// - Throws: what the transport throws, or a ``PortcullisError``; because of a proof only with
    ///   the condition ``SendingCondition/proof``.
    public func download(
        for request: URLRequest,
        requiring condition: SendingCondition = .nothing,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, ProvenResponse) {
        let limits = configuration.limits
        let content = try await ReplayableContent(of: request, spooledMax: limits.spooledBytes)
        let (answer, response) = try await exchange(
            request,
            content,
            delegate: delegate,
            requiring: condition,
            isDownload: true
        )
        return (try await answer.saved(atMost: limits.downloadBytes), response)
    }

    /// Sends a request and hands its answer out as it comes.
    ///
    /// On Apple's systems a slow reader slows the server down. On Linux it does not: one queue
    /// receives for all requests of a process, and would keep them all waiting. What was not read
    /// waits in memory there, up to the `bufferedBytes` of ``URLSessionTransport``, 64 MiB, and
    /// then the reading throws ``PortcullisError/answerTooLarge``. Take
    /// ``download(for:requiring:delegate:)`` for what is longer.
    ///
    /// - Parameters:
    ///   - request: as for ``data(for:requiring:delegate:)``.
    ///   - condition: what has to hold before it is sent, at each try and each redirect.
    ///   - delegate: hears of the tasks that send it, one for each try and each target of a
    ///     redirect, as ``TransferProgress`` does.
    /// - Returns: the content, to be read once, and the head.
    /// - Throws: what the transport throws, or a ``PortcullisError``; because of a proof only with
    ///   the condition ``SendingCondition/proof``.
    public func bytes(
        for request: URLRequest,
        requiring condition: SendingCondition = .nothing,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AnswerContent, ProvenResponse) {
        let limit = configuration.limits.spooledBytes
        let content = try await ReplayableContent(of: request, spooledMax: limit)
        return try await exchange(request, content, delegate: delegate, requiring: condition)
    }

    /// Sends a request with content that comes in pieces, and hands its answer out as it comes.
    ///
    /// A proof needs the digest of the whole content, so nothing is sent before the last piece has
    /// come. Until then the pieces are kept: in memory at first, then in a temporary file.
    ///
    /// - Parameters:
    ///   - request: everything but the content; what it has of that is not sent.
    ///   - content: the content, read once, at most ``PortcullisLimits/spooledBytes``.
    ///   - delegate: hears of the tasks that send it, as for ``bytes(for:requiring:delegate:)``.
    /// - Returns: the answer's content, to be read once, and its head.
    /// - Throws: what the content and the transport throw, or a ``PortcullisError``; nothing
    ///   because of a proof.
    public func bytes<Pieces: AsyncSequence & Sendable>(
        for request: URLRequest,
        content: Pieces,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AnswerContent, ProvenResponse) where Pieces.Element == Data {
        let limit = configuration.limits.spooledBytes
        let content = try await ReplayableContent(pieces: content, spooledMax: limit)
        return try await exchange(request, content, delegate: delegate)
    }

    func collected(
        _ answer: (AnswerContent, ProvenResponse)
    ) async throws -> (Data, ProvenResponse) {
        let data = try await answer.0.collected(atMost: configuration.limits.answerBytes)
        return (data, answer.1)
    }

    // MARK: The life of a request

    /// The most bytes that are read of an answer after which a request is sent again.
    private static let drainedBytesMax = 16 << 10

    func exchange(
        _ request: URLRequest,
        _ content: ReplayableContent,
        delegate: (any URLSessionTaskDelegate)?,
        requiring condition: SendingCondition = .nothing,
        isDownload: Bool = false
    ) async throws -> (AnswerContent, ProvenResponse) {
        guard var canonical = CanonicalRequest(request) else { throw PortcullisError.urlUnfit }
        var content = content
        var machine = driver.machine(for: canonical)
        machine.requiresProof = condition == .proof
        var attempts = 0
        var redirects = 0
        while true {
            let proven = await driver.prove(canonical, content, by: &machine)
            // What a cancelled task could not wait for is no reason to go without it.
            try Task.checkCancellation()
            if condition == .proof, case .none(let absence) = proven.proof {
                let step = machine.remained(without: absence, now: configuration.clock.now)
                guard try await driver.waits(for: step, &machine) else {
                    throw PortcullisError.proofUnavailable(absence)
                }
                continue
            }
            attempts += 1
            try content.checkUnchanged()
            let sent = try await send(
                proven.request,
                content.content,
                delegate: delegate,
                isDownload: isDownload
            )
            proven.lease?.end()
            driver.keepCookies(of: sent.response, sent.source, to: proven.request, canonical)
            // A redirect of an origin, too, may come with what the gateway says of its route.
            let facts = driver.facts(of: sent.response, sent.source, to: canonical)
            let step = await driver.settle(facts, to: proven, canonical, by: &machine)
            await driver.keepChallenge(of: sent.response, sent.source, to: canonical)
            if redirects < configuration.limits.redirects,
                let redirect = Redirect(sent.response, to: canonical),
                let next = CanonicalRequest(redirect.request)
            {
                redirects += 1
                canonical = next
                if !redirect.keepsContent { content = .none }
                machine = driver.machine(for: canonical, machine.patience)
                machine.requiresProof = condition == .proof
            } else {
                guard try await driver.waits(for: step, &machine) else {
                    let response = ProvenResponse(
                        response: sent.response,
                        to: proven,
                        refusal: facts.refusal,
                        mayHaveRun: machine.mayHaveRun,
                        attempts: attempts
                    )
                    return (sent.content, response)
                }
            }
            // What is left of a short answer is read, so that its connection can be used again.
            _ = try? await sent.content.collected(atMost: Self.drainedBytesMax)
        }
    }

    private func send(
        _ request: URLRequest,
        _ content: RequestContent,
        delegate: (any URLSessionTaskDelegate)?,
        isDownload: Bool
    ) async throws -> TransportAnswer {
        guard isDownload else {
            return try await driver.transport.send(request, content: content, delegate: delegate)
        }
        return try await driver.transport.download(
            request,
            content: content,
            delegate: delegate,
            atMost: configuration.limits.downloadBytes
        )
    }
}
