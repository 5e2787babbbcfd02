// The names are documented by the library that they stand in for.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

public struct RequestAdapterState: Sendable {
    public let requestID: UUID
    public let session: Session
}

public protocol RequestAdapter: Sendable {
    func adapt(
        _ urlRequest: URLRequest,
        for session: Session,
        completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
    )

    func adapt(
        _ urlRequest: URLRequest,
        using state: RequestAdapterState,
        completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
    )
}

extension RequestAdapter {
    public func adapt(
        _ urlRequest: URLRequest,
        using state: RequestAdapterState,
        completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
    ) {
        adapt(urlRequest, for: state.session, completion: completion)
    }
}

public enum RetryResult: Sendable {
    case retry
    case retryWithDelay(TimeInterval)
    case doNotRetry
    case doNotRetryWithError(any Error)
}

public protocol RequestRetrier: Sendable {
    func retry(
        _ request: Request,
        for session: Session,
        dueTo error: any Error,
        completion: @escaping @Sendable (RetryResult) -> Void
    )
}

public protocol RequestInterceptor: RequestAdapter, RequestRetrier {}

extension RequestInterceptor {
    public func adapt(
        _ urlRequest: URLRequest,
        for session: Session,
        completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
    ) {
        completion(.success(urlRequest))
    }

    public func retry(
        _ request: Request,
        for session: Session,
        dueTo error: any Error,
        completion: @escaping @Sendable (RetryResult) -> Void
    ) {
        completion(.doNotRetry)
    }
}

/// Several adapters and retriers: the adapters in their order, the retriers until one wants to.
///
/// `@unchecked Sendable`: nothing of it changes.
open class Interceptor: @unchecked Sendable, RequestInterceptor {
    public let adapters: [any RequestAdapter]
    public let retriers: [any RequestRetrier]

    public init(
        adapters: [any RequestAdapter] = [],
        retriers: [any RequestRetrier] = [],
        interceptors: [any RequestInterceptor] = []
    ) {
        self.adapters = adapters + interceptors
        self.retriers = retriers + interceptors
    }

    open func adapt(
        _ urlRequest: URLRequest,
        using state: RequestAdapterState,
        completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
    ) {
        adapt(urlRequest, state, adapters[...], completion)
    }

    private func adapt(
        _ request: URLRequest,
        _ state: RequestAdapterState,
        _ rest: ArraySlice<any RequestAdapter>,
        _ completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
    ) {
        guard let first = rest.first else { return completion(.success(request)) }
        first.adapt(request, using: state) { result in
            guard case .success(let adapted) = result else { return completion(result) }
            self.adapt(adapted, state, rest.dropFirst(), completion)
        }
    }

    open func retry(
        _ request: Request,
        for session: Session,
        dueTo error: any Error,
        completion: @escaping @Sendable (RetryResult) -> Void
    ) {
        retry(request, session, error, retriers[...], completion)
    }

    private func retry(
        _ request: Request,
        _ session: Session,
        _ error: any Error,
        _ rest: ArraySlice<any RequestRetrier>,
        _ completion: @escaping @Sendable (RetryResult) -> Void
    ) {
        guard let first = rest.first else { return completion(.doNotRetry) }
        first.retry(request, for: session, dueTo: error) { result in
            guard case .doNotRetry = result else { return completion(result) }
            self.retry(request, session, error, rest.dropFirst(), completion)
        }
    }
}

public protocol EventMonitor: Sendable {
    var queue: DispatchQueue { get }

    func requestDidFinish(_ request: Request)
}

extension EventMonitor {
    public var queue: DispatchQueue { .main }

    public func requestDidFinish(_ request: Request) {}
}

/// `RedirectHandler`'s own one.
public struct Redirector: Sendable {
    public enum Behavior: Sendable {
        case follow, doNotFollow
    }

    public static let follow = Redirector(behavior: .follow)
    public static let doNotFollow = Redirector(behavior: .doNotFollow)

    public let behavior: Behavior

    public init(behavior: Behavior) { self.behavior = behavior }
}
