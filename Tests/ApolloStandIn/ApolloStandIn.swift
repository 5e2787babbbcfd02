// The names are documented by the library that they stand in for.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

// The part of Apollo 2 that ApolloSigning uses, with the signatures of its documentation, and a
// chain of interceptors that runs. That package can't be fetched where this one is built.

public protocol HTTPInterceptor: Sendable {
    typealias NextHTTPInterceptorFunction = @Sendable (URLRequest) async throws -> HTTPResponse

    func intercept(
        request: URLRequest,
        next: NextHTTPInterceptorFunction
    ) async throws -> HTTPResponse
}

public struct HTTPResponse: Sendable, ~Copyable {
    public let response: HTTPURLResponse
    public let chunks: NonCopyableAsyncThrowingStream<Data>
}

public struct NonCopyableAsyncThrowingStream<Element: Sendable>: Sendable, ~Copyable {
    private let stream: AsyncThrowingStream<Element, any Error>

    public init(stream: AsyncThrowingStream<Element, any Error>) { self.stream = stream }

    public consuming func getStream() -> AsyncThrowingStream<Element, any Error> { stream }
}

public protocol GraphQLRequest<Operation>: Sendable {
    associatedtype Operation
}

public protocol InterceptorProvider: Sendable {
    func httpInterceptors<Request: GraphQLRequest>(for request: Request) -> [any HTTPInterceptor]
}

/// Makes an error of each status but 2xx.
public struct ResponseCodeInterceptor: HTTPInterceptor {
    public struct ResponseCodeError: Error {
        public let response: HTTPURLResponse
    }

    public init() {}

    public func intercept(
        request: URLRequest,
        next: NextHTTPInterceptorFunction
    ) async throws -> HTTPResponse {
        let answer = try await next(request)
        guard (200..<300).contains(answer.response.statusCode) else {
            throw ResponseCodeError(response: answer.response)
        }
        return answer
    }
}

/// The chain as Apollo runs it, for tests: the interceptors in their order, then the network.
public struct InterceptorChain: Sendable {
    public typealias Sender = @Sendable (URLRequest) async throws -> (Data, HTTPURLResponse)

    private let interceptors: [any HTTPInterceptor]
    private let send: Sender

    public init(_ interceptors: [any HTTPInterceptor], sender: @escaping Sender) {
        (self.interceptors, send) = (interceptors, sender)
    }

    public func data(for request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        let send = send
        var next: HTTPInterceptor.NextHTTPInterceptorFunction = { request in
            let (data, response) = try await send(request)
            let stream = AsyncThrowingStream<Data, any Error> { stream in
                stream.yield(data)
                stream.finish()
            }
            return HTTPResponse(response: response, chunks: .init(stream: stream))
        }
        for interceptor in interceptors.reversed() {
            let rest = next
            next = { try await interceptor.intercept(request: $0, next: rest) }
        }
        let answer = try await next(request)
        let response = answer.response
        var content = Data()
        for try await piece in answer.chunks.getStream() { content.append(piece) }
        return (content, response)
    }
}
