// The names are documented by the library that they stand in for.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

public import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

public enum AFError: Error {
    case responseValidationFailed(statusCode: Int)
    case requestAdaptationFailed(error: any Error)
    case requestRetryFailed(retryError: any Error, originalError: any Error)
    case sessionTaskFailed(error: any Error)
}

public struct DataResponse<Success: Sendable, Failure: Error>: Sendable {
    public let response: HTTPURLResponse?
    public let result: Result<Success, Failure>

    public var value: Success? { try? result.get() }
}

public final class Session: Sendable {
    /// What the network does, for tests; the genuine one has URLSession.
    public typealias Sender =
        @Sendable (URLRequest, UploadRequest.Uploadable?) async throws -> (Data, HTTPURLResponse)

    let interceptor: (any RequestInterceptor)?
    let eventMonitors: [any EventMonitor]
    let sender: Sender

    public init(
        sender: @escaping Sender,
        interceptor: (any RequestInterceptor)? = nil,
        redirectHandler: Redirector? = nil,
        eventMonitors: [any EventMonitor] = []
    ) {
        (self.sender, self.interceptor) = (sender, interceptor)
        self.eventMonitors = eventMonitors
    }

    public convenience init(
        configuration: URLSessionConfiguration = .ephemeral,
        interceptor: (any RequestInterceptor)? = nil,
        redirectHandler: Redirector? = nil,
        eventMonitors: [any EventMonitor] = []
    ) {
        let network = URLSession(configuration: configuration)
        self.init(
            sender: { request, uploadable in
                let (data, response) =
                    switch uploadable {
                    case .data(let data): try await network.upload(for: request, from: data)
                    case .file(let file): try await network.upload(for: request, fromFile: file)
                    case nil: try await network.data(for: request)
                    }
                guard let response = response as? HTTPURLResponse else {
                    throw URLError(.badServerResponse)
                }
                return (data, response)
            },
            interceptor: interceptor,
            redirectHandler: redirectHandler,
            eventMonitors: eventMonitors
        )
    }

    public func request(
        _ convertible: URLRequest,
        interceptor: (any RequestInterceptor)? = nil
    ) -> DataRequest {
        DataRequest(convertible, self, interceptor)
    }

    public func upload(
        _ data: Data,
        with convertible: URLRequest,
        interceptor: (any RequestInterceptor)? = nil
    ) -> UploadRequest {
        UploadRequest(convertible, self, interceptor, .data(data))
    }

    public func upload(
        _ fileURL: URL,
        with convertible: URLRequest,
        interceptor: (any RequestInterceptor)? = nil
    ) -> UploadRequest {
        UploadRequest(convertible, self, interceptor, .file(fileURL))
    }
}

/// `@unchecked Sendable`: what changes of it is under a lock.
open class Request: @unchecked Sendable {
    public let id = UUID()
    let session: Session
    private let initial: URLRequest
    private let interceptor: (any RequestInterceptor)?
    private let state = Mutex((response: HTTPURLResponse?.none, retryCount: 0, validates: false))

    init(_ request: URLRequest, _ session: Session, _ interceptor: (any RequestInterceptor)?) {
        (initial, self.session) = (request, session)
        // The request's own goes first.
        self.interceptor =
            switch (interceptor, session.interceptor) {
            case (let own?, let shared?): Interceptor(interceptors: [own, shared])
            case (let one, let other): one ?? other
            }
    }

    /// That of the last task.
    public var response: HTTPURLResponse? { state.withLock { $0.response } }
    public var retryCount: Int { state.withLock { $0.retryCount } }

    var uploadable: UploadRequest.Uploadable? { nil }

    func validates() { state.withLock { $0.validates = true } }

    /// From the first adapter to the last answer.
    func run() async -> Result<Data, AFError> {
        defer {
            for monitor in session.eventMonitors {
                monitor.queue.async { monitor.requestDidFinish(self) }
            }
        }
        while true {
            state.withLock { $0.response = nil }
            let failure: AFError
            switch await adapted() {
            case .failure(let error): failure = .requestAdaptationFailed(error: error)
            case .success(let request):
                do {
                    let (data, response) = try await session.sender(request, uploadable)
                    let validates = state.withLock { state in
                        state.response = response
                        return state.validates
                    }
                    guard validates, !(200..<300).contains(response.statusCode) else {
                        return .success(data)
                    }
                    failure = .responseValidationFailed(statusCode: response.statusCode)
                } catch {
                    failure = .sessionTaskFailed(error: error)
                }
            }
            switch await decision(failure) {
            case .retry, .retryWithDelay: state.withLock { $0.retryCount += 1 }
            case .doNotRetry: return .failure(failure)
            case .doNotRetryWithError(let error):
                return .failure(.requestRetryFailed(retryError: error, originalError: failure))
            }
        }
    }

    private func adapted() async -> Result<URLRequest, any Error> {
        guard let interceptor else { return .success(initial) }
        let adapterState = RequestAdapterState(requestID: id, session: session)
        return await withCheckedContinuation { continuation in
            interceptor.adapt(initial, using: adapterState) { continuation.resume(returning: $0) }
        }
    }

    private func decision(_ error: AFError) async -> RetryResult {
        guard let interceptor else { return .doNotRetry }
        return await withCheckedContinuation { continuation in
            interceptor.retry(self, for: session, dueTo: error) {
                continuation.resume(returning: $0)
            }
        }
    }
}

/// `@unchecked Sendable`: as its superclass.
open class DataRequest: Request, @unchecked Sendable {
    @discardableResult
    public func validate() -> Self {
        validates()
        return self
    }

    public func serializingData() -> DataTask<Data> { DataTask(request: self) }
}

public struct DataTask<Value: Sendable>: Sendable {
    let request: DataRequest

    public var response: DataResponse<Data, AFError> {
        get async {
            let result = await request.run()
            return DataResponse(response: request.response, result: result)
        }
    }
}

/// `@unchecked Sendable`: as its superclass.
open class UploadRequest: DataRequest, @unchecked Sendable {
    public enum Uploadable: Sendable {
        case data(Data)
        case file(URL)
    }

    private let content: Uploadable

    init(
        _ request: URLRequest,
        _ session: Session,
        _ interceptor: (any RequestInterceptor)?,
        _ content: Uploadable
    ) {
        self.content = content
        super.init(request, session, interceptor)
    }

    override var uploadable: Uploadable? { content }
}
