import Foundation
import HTTPTypes
@_spi(Generated) import OpenAPIRuntimeStandIn

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Operations that any request is one of.
struct ShopClient {
    private let client: UniversalClient

    init(
        serverURL: URL,
        transport: any ClientTransport,
        middlewares: [any ClientMiddleware] = []
    ) {
        client = UniversalClient(
            serverURL: serverURL,
            transport: transport,
            middlewares: middlewares
        )
    }

    func call(_ request: URLRequest) async throws -> Int {
        let target = String((request.url?.absoluteString ?? "").dropFirst(FakeGateway.origin.count))
        let body = request.httpBody.map { HTTPBody($0) }
        return try await send(request.httpMethod ?? "GET", target, body)
    }

    func put(_ target: String, _ body: HTTPBody) async throws -> Int {
        try await send("PUT", target, body)
    }

    private func send(_ method: String, _ target: String, _ body: HTTPBody?) async throws -> Int {
        try await client.send(
            input: (),
            forOperation: "any",
            serializer: { _ in
                (HTTPRequest(soar_path: target, method: .init(rawValue: method) ?? .get), body)
            },
            deserializer: { response, _ in response.status.code }
        )
    }
}
