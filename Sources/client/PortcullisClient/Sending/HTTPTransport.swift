public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// What carries requests: ``URLSessionTransport``, or something of yours.
///
/// A transport sends what it gets, once. It follows no redirect, adds no signed field behind the
/// client's back, and repeats nothing by itself, since a proof is good once.
public protocol HTTPTransport: Sendable {
    /// Adds the fields that the transport would add by itself and that a route may sign, such as
    /// those of a session's configuration. What the request has already stays.
    func prepared(_ request: URLRequest) -> URLRequest

    /// The cookies that the transport would send with a request, as the value of `Cookie`; `nil`
    /// for none. Where a route signs that field, they are signed and sent, and no others.
    func cookies(for request: URLRequest) -> String?

    /// Keeps the cookies that an answer sets, where the transport would keep them by itself.
    ///
    /// It is called for requests whose cookies were signed: their `httpShouldHandleCookies` is
    /// `false`, so that nothing adds a cookie after the signature.
    func keepCookies(of response: HTTPURLResponse, to request: URLRequest)

    /// Sends a request and returns when the head of its answer is there.
    ///
    /// - Parameters:
    ///   - request: everything but the content; its `httpBody` and `httpBodyStream` are nil.
    ///   - content: the content.
    /// - Returns: the head, and the content as it comes.
    /// - Throws: what kept the request from being answered.
    func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer

    /// The same, with a delegate of the app's that hears how the request goes.
    ///
    /// - Parameters:
    ///   - request: as for ``send(_:content:)``.
    ///   - content: the content.
    ///   - delegate: what it hears depends on the transport. Redirects are none of it.
    /// - Returns: the head, and the content as it comes.
    /// - Throws: what kept the request from being answered.
    func send(
        _ request: URLRequest,
        content: RequestContent,
        delegate: (any URLSessionTaskDelegate)?
    ) async throws -> TransportAnswer

    /// The same for an answer that goes into a file, piece by piece.
    ///
    /// A transport that can't pause what it receives writes the pieces itself as they come, so that
    /// a slow disk slows the server down. Any other one has nothing to do here.
    ///
    /// - Parameters:
    ///   - request: as for ``send(_:content:)``.
    ///   - content: the content.
    ///   - delegate: as for ``send(_:content:delegate:)``.
    ///   - limit: the most bytes that the file may have.
    /// - Returns: the head, and the content as it comes.
    /// - Throws: what kept the request from being answered.
    func download(
        _ request: URLRequest,
        content: RequestContent,
        delegate: (any URLSessionTaskDelegate)?,
        atMost limit: Int
    ) async throws -> TransportAnswer
}

extension HTTPTransport {
    /// Adds nothing.
    public func prepared(_ request: URLRequest) -> URLRequest { request }

    /// None.
    public func cookies(for request: URLRequest) -> String? { nil }

    /// Keeps none.
    public func keepCookies(of response: HTTPURLResponse, to request: URLRequest) {}

    /// Tells the delegate nothing.
    public func send(
        _ request: URLRequest,
        content: RequestContent,
        delegate: (any URLSessionTaskDelegate)?
    ) async throws -> TransportAnswer {
        try await send(request, content: content)
    }

    /// Sends it as any other request.
    public func download(
        _ request: URLRequest,
        content: RequestContent,
        delegate: (any URLSessionTaskDelegate)?,
        atMost limit: Int
    ) async throws -> TransportAnswer {
        try await send(request, content: content, delegate: delegate)
    }
}

/// An answer whose head has come.
public struct TransportAnswer: Sendable {
    /// Where an answer comes from.
    ///
    /// Frozen: an answer comes from the network or from a cache.
    @frozen
    public enum Source: Hashable, Sendable {
        /// The server, for this request.
        case network
        /// A cache of this device. What the gateway said in it is not obeyed.
        case cache
    }

    /// The head.
    public let response: HTTPURLResponse
    /// The content, as it comes.
    public let content: AnswerContent
    /// Where it comes from.
    public let source: Source

    /// An answer.
    public init(response: HTTPURLResponse, content: AnswerContent, source: Source = .network) {
        (self.response, self.content, self.source) = (response, content, source)
    }
}

/// The content of an answer, in the pieces in which it comes. It can be read once.
public struct AnswerContent: AsyncSequence, Sendable {
    /// One piece, of any length above zero.
    public typealias Element = Data

    private let next: @Sendable () async throws -> Data?
    /// The file that it went into as it came; `nil` where it waits to be read.
    private let file: (@Sendable () async throws -> URL)?

    /// Content that a closure hands out piece by piece, `nil` at its end.
    public init(next: @escaping @Sendable () async throws -> Data?) {
        (self.next, file) = (next, nil)
    }

    /// Content that went into a file as it came.
    ///
    /// - file: hands the file over once all of it has come.
    init(
        next: @escaping @Sendable () async throws -> Data?,
        file: @escaping @Sendable () async throws -> URL
    ) {
        (self.next, self.file) = (next, file)
    }

    /// Begins to read.
    public func makeAsyncIterator() -> Iterator { Iterator(next: next) }

    /// Reads piece by piece.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let next: @Sendable () async throws -> Data?

        /// The next piece; `nil` at the end.
        public mutating func next() async throws -> Data? { try await next() }
    }
}

extension AnswerContent {
    /// All of it.
    ///
    /// - Throws: ``PortcullisError/answerTooLarge``, or what ended the content.
    func collected(atMost limit: Int) async throws -> Data {
        var data = Data()
        for try await piece in self {
            guard data.count + piece.count <= limit else { throw PortcullisError.answerTooLarge }
            data.append(piece)
        }
        return data
    }

    /// All of it, in a file that is the caller's.
    ///
    /// - Throws: as ``collected(atMost:)``; ``PortcullisError/contentUnreadable`` where the file
    ///   can't be written.
    func saved(atMost limit: Int) async throws -> URL {
        if let file { return try await file() }
        let work = BlockingWork()
        let file = try await work.step { try TemporaryFile() }
        var count = 0
        for try await piece in self {
            count += piece.count
            guard count <= limit else { throw PortcullisError.answerTooLarge }
            try await work.step { try file.append(piece) }
        }
        return try file.handOver()
    }
}
