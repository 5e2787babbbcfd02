#if canImport(FoundationNetworking)
    import Dispatch
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

    /// A URLSession, and the delegate that it calls.
    private struct Line: Sendable {
        let session: URLSession
        let delegate: TransportDelegate
    }

    private let line: Line
    /// The most bytes of an answer that wait to be read.
    private let bufferedBytes: Int
    private let jar: CookieJar
    #if canImport(FoundationNetworking)
        private let authentication: Authentication?
        /// For downloads, once there is one.
        private let downloads = Guarded<Line?>(nil)
    #endif

    private var session: URLSession { line.session }

    /// A transport.
    ///
    /// - Parameters:
    ///   - configuration: of the URLSession. A background configuration does not work here: use
    ///     ``PortcullisSession/sign(_:fromFile:)`` with a session of yours.
    ///   - bufferedBytes: the most bytes of an answer that wait to be read. On Apple's systems
    ///     receiving pauses long before. On Linux it can't pause, and an answer that comes faster
    ///     than it is read fails there, but for downloads, which are written as they come.
    ///   - authentication: answers challenges, for pinning and client certificates; `nil` leaves
    ///     them to the system.
    public init(
        configuration: URLSessionConfiguration = .default,
        bufferedBytes: Int = 64 << 20,
        authentication: Authentication? = nil
    ) {
        self.bufferedBytes = bufferedBytes
        jar = CookieJar(configuration)
        #if canImport(FoundationNetworking)
            // With a storage it sends and keeps cookies whatever `httpShouldHandleCookies` says, in
            // place of the request's own. So that is done here.
            let configuration = configuration.copy() as? URLSessionConfiguration ?? configuration
            configuration.httpCookieStorage = nil
            self.authentication = authentication
        #endif
        let delegate = TransportDelegate(authentication)
        line = Line(
            session: URLSession(
                configuration: configuration,
                delegate: delegate,
                delegateQueue: nil
            ),
            delegate: delegate
        )
    }

    /// A URLSession holds its delegate until it is invalidated.
    deinit {
        session.finishTasksAndInvalidate()
        #if canImport(FoundationNetworking)
            downloads.withLock { $0 }?.session.finishTasksAndInvalidate()
        #endif
    }

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
        delegate: (any URLSessionTaskDelegate)?
    ) async throws -> TransportAnswer {
        try await send(request, content, watching: delegate, by: line)
    }

    private func send(
        _ request: URLRequest,
        _ content: RequestContent,
        watching: (any URLSessionTaskDelegate)?,
        by line: Line,
        into sink: TransportExchange.Sink? = nil
    ) async throws -> TransportAnswer {
        let session = line.session
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
        let exchange = TransportExchange(task: task, bytesMax: bufferedBytes, sink: sink)
        line.delegate.add(exchange, of: task, watching)
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
            let file = exchange.isSunk(response) ? sink?.target as? TemporaryFile : nil
            let reading = TransportReading(exchange, file, transport: self)
            let next: @Sendable () async throws -> Data? = { try await reading.next() }
            return TransportAnswer(
                response: response,
                content: file == nil
                    ? AnswerContent(next: next)
                    : AnswerContent(next: next) { try await reading.whole() },
                source: source
            )
        } onCancel: {
            exchange.cancel()
        }
    }
}

#if canImport(FoundationNetworking)
    extension URLSessionTransport {
        /// Sends a request, and writes the content of a good answer into a temporary file as it
        /// comes. Nothing more is received while a piece is written.
        public func download(
            _ request: URLRequest,
            content: RequestContent,
            delegate: (any URLSessionTaskDelegate)?,
            atMost limit: Int
        ) async throws -> TransportAnswer {
            let file = try await BlockingWork().step { try TemporaryFile() }
            return try await download(
                request,
                content,
                delegate: delegate,
                into: file,
                atMost: limit
            )
        }

        func download(
            _ request: URLRequest,
            _ content: RequestContent,
            delegate: (any URLSessionTaskDelegate)? = nil,
            into target: any AnswerSink,
            atMost limit: Int
        ) async throws -> TransportAnswer {
            let sink = TransportExchange.Sink(target: target, bytesMax: limit)
            return try await send(
                request,
                content,
                watching: delegate,
                by: downloadLine,
                into: sink
            )
        }

        /// Foundation receives for all URLSessions on one queue, and hands what it received to the
        /// queue of the delegate, where it piles up. This one calls the delegate at once instead,
        /// so that receiving waits for the disk. It keeps no cache, which would collect the
        /// content.
        private var downloadLine: Line {
            downloads.withLock { downloads in
                if let downloads { return downloads }
                let delegate = TransportDelegate(
                    authentication,
                    forwarding: DispatchQueue(label: "portcullis.client.downloads")
                )
                let configuration = session.configuration
                configuration.urlCache = nil
                let made = Line(
                    session: URLSession(
                        configuration: configuration,
                        delegate: delegate,
                        delegateQueue: ImmediateQueue()
                    ),
                    delegate: delegate
                )
                downloads = made
                return made
            }
        }
    }

    /// Calls at once what it is to call later.
    ///
    /// `@unchecked Sendable`: it adds no state to that of `OperationQueue`.
    private final class ImmediateQueue: OperationQueue, @unchecked Sendable {
        override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }
    }
#endif

/// Reads an exchange's content, and ends the exchange when it is dropped.
private final class TransportReading: Sendable {
    private let exchange: TransportExchange
    /// Where the content goes, and how much of it was read from there; `nil` where it goes nowhere.
    private let file: TemporaryFile?
    private let offset = Guarded(0)
    private let transport: URLSessionTransport

    init(_ exchange: TransportExchange, _ file: TemporaryFile?, transport: URLSessionTransport) {
        (self.exchange, self.file, self.transport) = (exchange, file, transport)
    }

    deinit { exchange.cancel() }

    func next() async throws -> Data? {
        if let piece = try await received() { return piece }
        guard let file else { return nil }
        let start = offset.withLock { $0 }
        let piece = try await BlockingWork().step { try file.piece(at: start) }
        offset.withLock { $0 = start + piece.count }
        return piece.isEmpty ? nil : piece
    }

    /// The file, once all of the content is in it.
    func whole() async throws -> URL {
        guard try await received() == nil, let file else { throw PortcullisError.contentUnreadable }
        return try file.handOver()
    }

    /// The next piece that waits to be read. With a file that is none, at the end.
    private func received() async throws -> Data? {
        try await withTaskCancellationHandler {
            try await exchange.piece()
        } onCancel: { [exchange] in
            exchange.cancel()
        }
    }
}

/// The cookies of a URLSession's configuration.
private struct CookieJar: Sendable {
    private let storage: HTTPCookieStorage?
    private let isSent: Bool
    private let isKept: Bool

    init(_ configuration: URLSessionConfiguration) {
        storage = configuration.httpCookieStorage
        isSent = configuration.httpShouldSetCookies
        isKept = configuration.httpCookieAcceptPolicy != .never
    }

    /// The value of `Cookie` for a URL; `nil` for none.
    func field(for url: URL?) -> String? {
        guard isSent, let url = url.flatMap(Self.ofCookies),
            let cookies = storage?.cookies(for: url), !cookies.isEmpty
        else { return nil }
        return HTTPCookie.requestHeaderFields(with: cookies)["Cookie"]
    }

    /// Keeps what an answer sets, by the storage's policy.
    func keep(_ response: HTTPURLResponse, to request: URLRequest) {
        guard isKept, let url = response.url.flatMap(Self.ofCookies),
            let fields = response.allHeaderFields as? [String: String]
        else { return }
        let cookies = HTTPCookie.cookies(withResponseHeaderFields: fields, for: url)
        storage?.setCookies(cookies, for: url, mainDocumentURL: request.mainDocumentURL)
    }

    /// A URL as storages know it: the handshake of a WebSocket has the cookies of HTTP (RFC 6455
    /// §4.1).
    private static func ofCookies(_ url: URL) -> URL? {
        let schemes = ["ws": "http", "wss": "https"]
        guard let scheme = url.scheme.flatMap({ schemes[$0.lowercased()] }) else { return url }
        var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        parts?.scheme = scheme
        return parts?.url
    }
}
