import AlamofireStandIn
import ApolloStandIn
import ClientKit
import Expectations
import Foundation
import HTTPTypes
import LoopbackKit
import OpenAPIRuntimeStandIn
import PortcullisClient
import Testing

@testable import ClientRecipes

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// Apps whose requests another library sends, before a gateway that enforces.
    @Suite struct Libraries {
        /// A transport as swift-openapi-urlsession has one: by URLSession, knowing no gateway.
        struct PlainTransport: ClientTransport {
            func send(
                _ request: HTTPRequest,
                body: HTTPBody?,
                baseURL: URL,
                operationID: String
            ) async throws -> (HTTPTypes.HTTPResponse, HTTPBody?) {
                let target = baseURL.absoluteString + (request.path ?? "")
                var plain = URLRequest(url: try #require(URL(string: target)))
                plain.httpMethod = request.method.rawValue
                for field in request.headerFields {
                    plain.addValue(field.value, forHTTPHeaderField: field.name.rawName)
                }
                if let body { plain.httpBody = try await Data(collecting: body, upTo: .max) }
                let (data, answer) = try await Libraries.sent(plain)
                var response = HTTPTypes.HTTPResponse(status: .init(code: answer.statusCode))
                for case (let name as String, let value as String) in answer.allHeaderFields {
                    if let name = HTTPField.Name(name) { response.headerFields[name] = value }
                }
                return (response, HTTPBody(data))
            }
        }

        /// Sends a request as it stands, by a URLSession without anything of ours.
        static func sent(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
            let plain = URLSession(configuration: .ephemeral)
            defer { plain.finishTasksAndInvalidate() }
            let (data, answer) = try await plain.data(for: request)
            return (data, try #require(answer as? HTTPURLResponse))
        }

        /// Sends an order, and returns the status that its caller sees.
        typealias App = @Sendable (URL, PortcullisSession) async throws -> Int

        enum Library: String, CaseIterable {
            case urlSession, generated, generatedBesideMiddleware, alamofire, apollo

            var app: App {
                switch self {
                case .urlSession:
                    { gateway, session in
                        var next = try await session.sign(Library.order(gateway))
                        while true {
                            let (_, answer) = try await Libraries.sent(next.request)
                            guard let again = try await session.signAgain(next, after: answer)
                            else { return answer.statusCode }
                            next = again
                        }
                    }
                case .generated:
                    { gateway, session in
                        let transport = PortcullisTransport(session: session)
                        return try await Library.place(
                            Client(serverURL: gateway, transport: transport)
                        )
                    }
                case .generatedBesideMiddleware:
                    { gateway, session in
                        let client = Client(
                            serverURL: gateway,
                            transport: PlainTransport(),
                            middlewares: [PortcullisMiddleware(session: session)]
                        )
                        return try await Library.place(client)
                    }
                case .alamofire:
                    { gateway, session in
                        let signing = AlamofireSigning(session)
                        let api = Session(
                            interceptor: signing,
                            redirectHandler: Redirector.doNotFollow,
                            eventMonitors: [signing]
                        )
                        let order = api.request(Library.order(gateway)).validate()
                        return await order.serializingData().response.response?.statusCode ?? 0
                    }
                case .apollo:
                    { gateway, session in
                        let chain = InterceptorChain(
                            [ResponseCodeInterceptor(), ApolloSigning(session: session)],
                            sender: Libraries.sent
                        )
                        return try await chain.data(for: Library.order(gateway)).1.statusCode
                    }
                }
            }

            private static func order(_ gateway: URL) -> URLRequest {
                var request = URLRequest(url: gateway.appending(path: "orders/lamp%201"))
                request.httpMethod = "POST"
                request.httpBody = Data(#"{"item":"lamp","count":2}"#.utf8)
                return request
            }

            private static func place(_ client: Client) async throws -> Int {
                let order = Components.Schemas.Order(item: "lamp", count: 2)
                let output = try await client.placeOrder(
                    .init(path: .init(id: "lamp 1"), query: .init(dry: true), body: .json(order))
                )
                switch output {
                case .ok(let ok): return ok.body == .json(order) ? 200 : 0
                case .undocumented(let status, _): return status
                }
            }
        }

        /// Answers an order with itself, and a picture with nothing.
        private static let shop: TestOrigin.Script = { connection in
            while let request = try connection.nextRequest() {
                if request.method == "PUT" {
                    try connection.answer(204, to: request)
                } else {
                    let fields = "Content-Type: application/json\r\n"
                    let body = String(decoding: request.body, as: UTF8.self)
                    try connection.answer(200, body: body, fields: fields, to: request)
                }
            }
        }

        private func gateway(_ stand: ClientStand) throws -> URL {
            try #require(URL(string: "http://127.0.0.1:\(stand.gateway.port)"))
        }

        @Test func `an app that knows nothing of its routes is admitted`() async throws {
            let stand = try ClientStand(script: Self.shop)
            defer { stand.end() }
            let gateway = try gateway(stand)
            for library in Library.allCases {
                try stand.startOver(isFrozen: false)
                let session = try stand.app { $0.defaultRequirement = nil }
                for _ in 0..<2 {
                    try await expectEqual(library.app(gateway, session), 200, "\(library)")
                }
                expectEqual(stand.verdicts, ["pass", "pass"], "\(library)")
                let seen = try #require(stand.requests.last, "\(library)")
                #expect(seen.target.hasPrefix("/orders/lamp%"), "\(library)")
                let order = try JSONDecoder().decode(
                    Components.Schemas.Order.self,
                    from: Data(seen.body)
                )
                expectEqual(order, Components.Schemas.Order(item: "lamp", count: 2), "\(library)")
                expectEqual(stand.cost, Cost(keys: 1, attestations: 1), "\(library)")
            }
        }

        @Test(arguments: Library.allCases)
        func `an app whose key the gateway lost with its store enrols and is admitted`(
            library: Library
        ) async throws {
            let stand = try ClientStand(script: Self.shop)
            defer { stand.end() }
            let session = try stand.app()
            let gateway = try gateway(stand)
            try await expectEqual(library.app(gateway, session), 200)
            try stand.gateway.restart(wipingStore: true)
            try await expectEqual(library.app(gateway, session), 200)
            expectEqual(stand.verdicts, ["pass", "pass"])
            expectEqual(stand.cost, Cost(keys: 2, attestations: 2))
        }

        @Test(arguments: [Library.generated, .generatedBesideMiddleware])
        func `content that a generated client streams is what the origin gets`(
            library: Library
        ) async throws {
            let stand = try ClientStand(script: Self.shop)
            defer { stand.end() }
            let session = try stand.app { $0.defaultRequirement = nil }
            let isOurs = library == .generated
            let client = Client(
                serverURL: try gateway(stand),
                transport: isOurs ? PortcullisTransport(session: session) : PlainTransport(),
                middlewares: isOurs ? [] : [PortcullisMiddleware(session: session)]
            )
            let piece = Data(repeating: 0x70, count: 4096)
            let picture = AsyncStream<Data> { stream in
                for _ in 0..<100 { stream.yield(piece) }
                stream.finish()
            }
            let body = HTTPBody(picture, length: .unknown, iterationBehavior: .single)
            try await expectEqual(client.uploadPicture(.init(body: .binary(body))), .noContent)
            expectEqual(stand.verdicts, ["pass"])
            expectEqual(stand.origin.requests.last?.body.count, 409_600)
        }

        @Test func `an upload of Alamofire's from a file is admitted`() async throws {
            let stand = try ClientStand(script: Self.shop)
            defer { stand.end() }
            let session = try stand.app { $0.defaultRequirement = nil }
            let signing = AlamofireSigning(session)
            let api = Session(interceptor: signing, eventMonitors: [signing])
            let file = stand.folder.appending(path: "picture")
            try Data(repeating: 0x70, count: 409_600).write(to: file)
            let upload = api.upload(
                file,
                with: try stand.request("PUT", "/orders/picture"),
                interceptor: signing.uploading(.file(file))
            )
            let response = await upload.validate().serializingData().response
            expectEqual(response.response?.statusCode, 204)
            expectEqual(stand.verdicts, ["pass"])
            expectEqual(stand.origin.requests.last?.body.count, 409_600)
        }
    }
}
