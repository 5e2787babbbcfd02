public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// What has to hold before a request is sent.
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
    /// Sends a request under a condition, and collects its answer.
    ///
    /// - Parameters:
    ///   - request: as for ``data(for:delegate:)``.
    ///   - condition: what has to hold before it is sent, at each try and each redirect.
    ///   - delegate: as for ``data(for:delegate:)``.
    /// - Returns: the content, at most ``PortcullisLimits/answerBytes``, and the head.
    /// - Throws: what the transport throws, or a ``PortcullisError``.
    public func data(
        for request: URLRequest,
        requiring condition: SendingCondition,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, ProvenResponse) {
        let limit = configuration.limits.spooledBytes
        let content = try await ReplayableContent(of: request, spooledMax: limit)
        return try await collected(exchange(request, content, delegate, requiring: condition))
    }

    /// Sends a request with a file as its content, under a condition.
    ///
    /// - Parameters:
    ///   - request: everything but the content.
    ///   - file: must not change until the answer is there.
    ///   - condition: what has to hold before it is sent, at each try and each redirect.
    ///   - delegate: as for ``data(for:delegate:)``.
    /// - Returns: the answer's content, at most ``PortcullisLimits/answerBytes``, and its head.
    /// - Throws: what the transport throws, or a ``PortcullisError``.
    public func upload(
        for request: URLRequest,
        fromFile file: URL,
        requiring condition: SendingCondition,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, ProvenResponse) {
        let content = try await ReplayableContent(file: file)
        return try await collected(exchange(request, content, delegate, requiring: condition))
    }

    /// Sends a request with content in memory, under a condition.
    ///
    /// - Parameters:
    ///   - request: everything but the content; what it has of that is not sent.
    ///   - content: the content.
    ///   - condition: what has to hold before it is sent, at each try and each redirect.
    ///   - delegate: as for ``data(for:delegate:)``.
    /// - Returns: the answer's content, at most ``PortcullisLimits/answerBytes``, and its head.
    /// - Throws: what the transport throws, or a ``PortcullisError``.
    public func upload(
        for request: URLRequest,
        from content: Data,
        requiring condition: SendingCondition,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, ProvenResponse) {
        let content = ReplayableContent(content)
        return try await collected(exchange(request, content, delegate, requiring: condition))
    }

    /// Sends a request under a condition, and writes its answer to a file, piece by piece.
    ///
    /// - Parameters:
    ///   - request: as for ``data(for:delegate:)``.
    ///   - condition: what has to hold before it is sent, at each try and each redirect.
    ///   - delegate: as for ``data(for:delegate:)``.
    /// - Returns: as ``download(for:delegate:)``.
    /// - Throws: what the transport throws, or a ``PortcullisError``.
    public func download(
        for request: URLRequest,
        requiring condition: SendingCondition,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, ProvenResponse) {
        let limits = configuration.limits
        let content = try await ReplayableContent(of: request, spooledMax: limits.spooledBytes)
        let (answer, response) = try await exchange(
            request,
            content,
            delegate,
            requiring: condition,
            isDownload: true
        )
        return (try await answer.saved(atMost: limits.downloadBytes), response)
    }

    /// Sends a request under a condition, and hands its answer out as it comes.
    ///
    /// - Parameters:
    ///   - request: as for ``data(for:delegate:)``.
    ///   - condition: what has to hold before it is sent, at each try and each redirect.
    ///   - delegate: as for ``data(for:delegate:)``.
    /// - Returns: the content, to be read once, and the head.
    /// - Throws: what the transport throws, or a ``PortcullisError``.
    public func bytes(
        for request: URLRequest,
        requiring condition: SendingCondition,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AnswerContent, ProvenResponse) {
        let limit = configuration.limits.spooledBytes
        let content = try await ReplayableContent(of: request, spooledMax: limit)
        return try await exchange(request, content, delegate, requiring: condition)
    }
}
