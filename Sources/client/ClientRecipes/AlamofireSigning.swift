import Alamofire
import Dispatch
import Foundation
import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Signs what an Alamofire session sends, and has it sent again where that helps. It is the
/// session's interceptor and one of its event monitors.
///
/// Alamofire asks it about an answer only where the request has `.validate()`. Adapters that change
/// fields stand before it: `Interceptor(adapters: [tokens, signing], retriers: [signing])`.
nonisolated final class AlamofireSigning: RequestInterceptor, EventMonitor {
    /// Where Alamofire says that a request has ended.
    let queue = DispatchQueue(label: "portcullis.alamofire")
    private let signatures: Signatures

    init(_ session: PortcullisSession) { signatures = Signatures(session) }

    /// What signs an upload, whose content Alamofire shows no adapter. It is the upload's
    /// interceptor, also where the session has this one.
    ///
    /// Content that is a stream has no such form: put it into a file. `MultipartFormData.encode()`
    /// makes data.
    func uploading(_ content: RequestContent) -> some RequestInterceptor {
        UploadSigning(signatures: signatures, content: content)
    }

    func adapt(
        _ urlRequest: URLRequest,
        using state: RequestAdapterState,
        completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
    ) {
        signatures.adapt(urlRequest, state.requestID, uploading: nil, then: completion)
    }

    func retry(
        _ request: Request,
        for session: Session,
        dueTo error: any Error,
        completion: @escaping @Sendable (RetryResult) -> Void
    ) {
        signatures.retry(request, completion)
    }

    func requestDidFinish(_ request: Request) {
        let (signatures, id, answer) = (signatures, request.id, request.response)
        Task { await signatures.end(id, answer) }
    }
}

private nonisolated struct UploadSigning: RequestInterceptor {
    let signatures: Signatures
    let content: RequestContent

    func adapt(
        _ urlRequest: URLRequest,
        using state: RequestAdapterState,
        completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
    ) {
        signatures.adapt(urlRequest, state.requestID, uploading: content, then: completion)
    }

    func retry(
        _ request: Request,
        for session: Session,
        dueTo error: any Error,
        completion: @escaping @Sendable (RetryResult) -> Void
    ) {
        signatures.retry(request, completion)
    }
}

/// The last signature of each request that has not ended.
private actor Signatures {
    private enum Step {
        /// It is on its way, or its answer was not asked about.
        case sent
        /// Its answer was asked about, and is the caller's.
        case heard
        /// It was made because of an answer and goes with the next try.
        case next
    }

    private let session: PortcullisSession
    private var requests: [UUID: (signed: SignedRequest, step: Step)] = [:]
    /// Requests that are being signed and have not ended.
    private var signing: Set<UUID> = []

    init(_ session: PortcullisSession) { self.session = session }

    nonisolated func adapt(
        _ request: URLRequest,
        _ id: UUID,
        uploading content: RequestContent?,
        then completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
    ) {
        Task {
            do {
                completion(.success(try await signed(request, id, uploading: content)))
            } catch {
                completion(.failure(error))
            }
        }
    }

    nonisolated func retry(
        _ request: Request,
        _ completion: @escaping @Sendable (RetryResult) -> Void
    ) {
        guard let answer = request.response else { return completion(.doNotRetry) }
        let id = request.id
        Task {
            do {
                completion(try await isSignedAgain(id, after: answer) ? .retry : .doNotRetry)
            } catch {
                completion(.doNotRetryWithError(error))
            }
        }
    }

    private func signed(
        _ request: URLRequest,
        _ id: UUID,
        uploading content: RequestContent?
    ) async throws -> URLRequest {
        if let (signed, step) = requests[id] {
            // The upload's interceptor and the session's both see it: once is enough.
            if step == .sent, signed.request.allHTTPHeaderFields == request.allHTTPHeaderFields {
                return request
            }
            if step == .next {
                requests[id] = (signed, .sent)
                return Self.sent(signed, content)
            }
        }
        signing.insert(id)
        defer { signing.remove(id) }
        var request = request
        let signed: SignedRequest
        switch content {
        case .file(let file): signed = try await session.sign(request, fromFile: file)
        case .data(let data):
            request.httpBody = data
            signed = try await session.sign(request)
        case .some(.none), nil: signed = try await session.sign(request)
        }
        if signing.contains(id) { requests[id] = (signed, .sent) }
        return Self.sent(signed, content)
    }

    /// An upload brings its content itself.
    private static func sent(_ signed: SignedRequest, _ content: RequestContent?) -> URLRequest {
        var request = signed.request
        if content != nil { request.httpBody = nil }
        return request
    }

    private func isSignedAgain(_ id: UUID, after answer: HTTPURLResponse) async throws -> Bool {
        guard let (last, step) = requests[id], step == .sent else { return false }
        requests[id] = (last, .heard)
        guard let again = try await session.signAgain(last, after: answer) else { return false }
        // It may have been cancelled meanwhile.
        guard requests[id] != nil else { return false }
        requests[id] = (again, .next)
        return true
    }

    /// Good answers are heard here: they bring challenges, and say what a rule will ask.
    func end(_ id: UUID, _ answer: HTTPURLResponse?) async {
        signing.remove(id)
        guard let (last, step) = requests.removeValue(forKey: id), step == .sent, let answer
        else { return }
        await session.learn(from: answer, to: last)
    }
}
