#if canImport(FoundationNetworking)
    import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Sends with URLSession. It makes a URLSession of its own, because redirects are the client's:
/// each target gets a proof of its own.
public final class URLSessionTransport: HTTPTransport {
    /// Answers a challenge of the system, such as the server's certificate.
    public typealias Authentication =
        @Sendable (URLAuthenticationChallenge) async -> (
            URLSession.AuthChallengeDisposition, URLCredential?
        )

    private let session: URLSession
    private let delegate: TransportDelegate
    private let jar: CookieJar

    /// A transport.
    ///
    /// - Parameters:
    ///   - configuration: of the URLSession. A background configuration does not work here: use
    ///     ``PortcullisSession/sign(_:fromFile:)`` with a session of yours.
    ///   - bufferedBytes: the most bytes of an answer that wait to be read. On Apple's systems
    ///     receiving pauses long before. On Linux it can't pause, and an answer that comes faster
    ///     than it is read fails there.
    ///   - authentication: answers challenges, for pinning and client certificates; `nil` leaves
    ///     them to the system.
    public init(
        configuration: URLSessionConfiguration = .default,
        bufferedBytes: Int = 64 << 20,
        authentication: Authentication? = nil
    ) {
        delegate = TransportDelegate(bytesMax: bufferedBytes, authentication: authentication)
        jar = CookieJar(configuration)
        #if canImport(FoundationNetworking)
            // With a storage it sends and keeps cookies whatever `httpShouldHandleCookies` says, in
            // place of the request's own. So that is done here.
            let configuration = configuration.copy() as? URLSessionConfiguration ?? configuration
            configuration.httpCookieStorage = nil
        #endif
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    /// A URLSession holds its delegate until it is invalidated.
    deinit { session.finishTasksAndInvalidate() }

    /// Adds the fields of the configuration.
    public func prepared(_ request: URLRequest) -> URLRequest {
        var request = request
        for (name, value) in session.configuration.httpAdditionalHeaders ?? [:] {
            guard let name = name as? String, let value = value as? String,
                request.value(forHTTPHeaderField: name) == nil
            else { continue }
            request.setValue(value, forHTTPHeaderField: name)
        }
        return request
    }

    /// The cookies of the configuration's storage for the request's URL.
    public func cookies(for request: URLRequest) -> String? { jar.field(for: request.url) }

    /// Puts the cookies that an answer sets into the configuration's storage, by its policy.
    public func keepCookies(of response: HTTPURLResponse, to request: URLRequest) {
        jar.keep(response, to: request)
    }

    /// Sends a request and returns when the head of its answer is there.
    public func send(
        _ request: URLRequest,
        content: RequestContent
    ) async throws -> TransportAnswer {
        try await send(request, content: content, delegate: nil)
    }

    /// The same, with a delegate that hears of the request's task: of content that was sent and of
    /// the end; on Apple's systems also that it was made, that it waits for a network, its metrics,
    /// and of challenges about the server or a client's certificate.
    public func send(
        _ request: URLRequest,
        content: RequestContent,
        delegate watching: (any URLSessionTaskDelegate)?
    ) async throws -> TransportAnswer {
        #if canImport(FoundationNetworking)
            var request = request
            if request.httpShouldHandleCookies, request.value(forHTTPHeaderField: "Cookie") == nil {
                request.setValue(cookies(for: request), forHTTPHeaderField: "Cookie")
            }
        #endif
        // Upload tasks, because URLSession puts no `Content-Type` of its own into them.
        let task: URLSessionTask =
            switch content {
            case .none: session.dataTask(with: request)
            case .data(let data): session.uploadTask(with: request, from: data)
            case .file(let url): session.uploadTask(with: request, fromFile: url)
            }
        let exchange = TransportExchange(task: task, bytesMax: delegate.bytesMax)
        delegate.add(exchange, of: task, watching)
        #if !canImport(FoundationNetworking)
            watching?.urlSession?(session, didCreateTask: task)
        #endif
        return try await withTaskCancellationHandler { [request] in
            let response = try await exchange.response()
            let source = CachedAnswer.source(
                of: response,
                to: request,
                session.configuration.urlCache
            )
            #if canImport(FoundationNetworking)
                if source == .network, request.httpShouldHandleCookies {
                    keepCookies(of: response, to: request)
                }
            #endif
            // The answer keeps the session alive until it was read.
            let reading = TransportReading(exchange, transport: self)
            return TransportAnswer(
                response: response,
                content: AnswerContent { try await reading.next() },
                source: source
            )
        } onCancel: {
            exchange.cancel()
        }
    }
}

/// Reads an exchange's content, and ends the exchange when nobody reads any more.
private final class TransportReading: Sendable {
    private let exchange: TransportExchange
    private let transport: URLSessionTransport

    init(_ exchange: TransportExchange, transport: URLSessionTransport) {
        (self.exchange, self.transport) = (exchange, transport)
    }

    deinit { exchange.cancel() }

    func next() async throws -> Data? {
        try await withTaskCancellationHandler {
            try await exchange.piece()
        } onCancel: { [exchange] in
            exchange.cancel()
        }
    }
}
