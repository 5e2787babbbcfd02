import Foundation
import HTTPTypes
import OpenAPIRuntime
import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends what a generated client asks for through a `PortcullisSession`, which signs it and sends
/// it again where that helps.
///
/// Content is kept until its last piece has come, since a proof needs the digest of all of it. The
/// answer is handed on as it comes.
nonisolated struct PortcullisTransport: ClientTransport {
    let session: PortcullisSession

    func send(
        _ request: HTTPRequest,
        body: HTTPBody?,
        baseURL: URL,
        operationID: String
    ) async throws -> (HTTPResponse, HTTPBody?) {
        let head = try Self.urlRequest(request, at: baseURL)
        let (content, answer) =
            if let body {
                try await session.bytes(for: head, content: body.map { Data($0) })
            } else {
                try await session.bytes(for: head)
            }
        let body = HTTPBody(content, length: .unknown, iterationBehavior: .single)
        return (Self.httpResponse(answer.response), body)
    }

    /// The request of an operation, below the server's URL.
    static func urlRequest(_ request: HTTPRequest, at baseURL: URL) throws -> URLRequest {
        var base = baseURL.absoluteString[...]
        if base.hasSuffix("/") { base = base.dropLast() }
        guard let url = URL(string: base + (request.path ?? "/")) else { throw URLError(.badURL) }
        var made = URLRequest(url: url)
        made.httpMethod = request.method.rawValue
        for name in Set(request.headerFields.map(\.name)) {
            made.setValue(request.headerFields[name], forHTTPHeaderField: name.rawName)
        }
        return made
    }

    private static func httpResponse(_ answer: HTTPURLResponse) -> HTTPResponse {
        var response = HTTPResponse(status: .init(code: answer.statusCode))
        for case (let name as String, let value as String) in answer.allHeaderFields {
            guard let name = HTTPField.Name(name) else { continue }
            response.headerFields[name] = value
        }
        return response
    }
}
