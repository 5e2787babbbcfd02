import Apollo
import Foundation
import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Signs the requests of an Apollo client, and has them sent again where that helps.
///
/// It stands last, next to the network: what it signs is what is sent, and it sees an answer before
/// `ResponseCodeInterceptor` makes an error of it.
nonisolated struct ApolloSigning: HTTPInterceptor {
    let session: PortcullisSession

    func intercept(
        request: URLRequest,
        next: NextHTTPInterceptorFunction
    ) async throws -> HTTPResponse {
        var signed = try await session.sign(request)
        while true {
            let answer = try await next(signed.request)
            guard let again = try await session.signAgain(signed, after: answer.response) else {
                return answer
            }
            signed = again
        }
    }
}
