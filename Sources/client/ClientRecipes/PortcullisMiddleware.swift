import Foundation
import HTTPTypes
import OpenAPIRuntime
import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Signs the requests of a generated client that another transport sends, and has them sent again
/// where that helps. Copy `PortcullisTransport.swift` too.
///
/// It stands last of the middlewares, and the transport follows no redirect: what is sent is what
/// was signed. An app that may choose its transport takes `PortcullisTransport` instead.
nonisolated struct PortcullisMiddleware: ClientMiddleware {
    let session: PortcullisSession
    /// The most content of a request, which is kept in memory. More fails the request.
    var contentBytesMax = 16 << 20

    func intercept(
        _ request: HTTPRequest,
        body: HTTPBody?,
        baseURL: URL,
        operationID: String,
        next:
            @concurrent @Sendable (HTTPRequest, HTTPBody?, URL) async throws
            -> (HTTPResponse, HTTPBody?)
    ) async throws -> (HTTPResponse, HTTPBody?) {
        var plain = try PortcullisTransport.urlRequest(request, at: baseURL)
        if let body { plain.httpBody = try await Data(collecting: body, upTo: contentBytesMax) }
        var signed = try await session.sign(plain)
        while true {
            let (head, server) = try Self.parts(of: signed.request, request)
            let content = signed.request.httpBody.map { HTTPBody($0) }
            let (response, answer) = try await next(head, content, server)
            guard let heard = Self.urlResponse(response, to: signed.request),
                let again = try await session.signAgain(signed, after: heard)
            else { return (response, answer) }
            signed = again
        }
    }

    /// A signed request as the transport takes it: the target as it was signed, and the server that
    /// it goes to.
    private static func parts(
        of signed: URLRequest,
        _ request: HTTPRequest
    ) throws -> (HTTPRequest, URL) {
        guard let url = signed.url, var server = URLComponents(string: url.absoluteString) else {
            throw URLError(.badURL)
        }
        var head = request
        head.path = server.percentEncodedPath + (server.percentEncodedQuery.map { "?" + $0 } ?? "")
        for (name, value) in signed.allHTTPHeaderFields ?? [:] {
            guard let name = HTTPField.Name(name) else { continue }
            head.headerFields[name] = value
        }
        (server.percentEncodedPath, server.percentEncodedQuery) = ("", nil)
        guard let server = server.url else { throw URLError(.badURL) }
        return (head, server)
    }

    private static func urlResponse(
        _ response: HTTPResponse,
        to request: URLRequest
    ) -> HTTPURLResponse? {
        var fields: [String: String] = [:]
        for name in Set(response.headerFields.map(\.name)) {
            fields[name.rawName] = response.headerFields[name]
        }
        return request.url.flatMap {
            HTTPURLResponse(
                url: $0,
                statusCode: response.status.code,
                httpVersion: nil,
                headerFields: fields
            )
        }
    }
}
