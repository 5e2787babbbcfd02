// What swift-openapi-generator makes of a document with two operations: written by hand, since the
// generator can't be fetched where this is built, in the shape of its output.
import Foundation
import HTTPTypes
@_spi(Generated) import OpenAPIRuntimeStandIn

enum Components {
    enum Schemas {
        struct Order: Codable, Hashable, Sendable {
            var item: String
            var count: Int
        }
    }
}

enum Operations {
    enum PlaceOrder {
        static let id = "placeOrder"

        struct Input: Sendable, Hashable {
            struct Path: Sendable, Hashable {
                var id: String
            }
            struct Query: Sendable, Hashable {
                var dry: Bool?
            }
            enum Body: Sendable, Hashable {
                case json(Components.Schemas.Order)
            }

            var path: Path
            var query: Query = .init()
            var body: Body
        }

        enum Output: Sendable, Hashable {
            struct Ok: Sendable, Hashable {
                enum Body: Sendable, Hashable {
                    case json(Components.Schemas.Order)
                }

                var body: Body
            }

            case ok(Ok)
            case undocumented(statusCode: Int, UndocumentedPayload)
        }
    }

    enum UploadPicture {
        static let id = "uploadPicture"

        struct Input: Sendable, Hashable {
            enum Body: Sendable, Hashable {
                case binary(HTTPBody)

                static func == (first: Self, second: Self) -> Bool { false }

                func hash(into hasher: inout Hasher) {}
            }

            var body: Body
        }

        enum Output: Sendable, Hashable {
            case noContent
            case undocumented(statusCode: Int, UndocumentedPayload)
        }
    }
}

struct Client: Sendable {
    private let client: UniversalClient

    init(
        serverURL: Foundation.URL,
        configuration: Configuration = .init(),
        transport: any ClientTransport,
        middlewares: [any ClientMiddleware] = []
    ) {
        client = .init(
            serverURL: serverURL,
            configuration: configuration,
            transport: transport,
            middlewares: middlewares
        )
    }

    private var converter: Converter { client.converter }

    func placeOrder(
        _ input: Operations.PlaceOrder.Input
    ) async throws -> Operations.PlaceOrder.Output {
        try await client.send(
            input: input,
            forOperation: Operations.PlaceOrder.id,
            serializer: { input in
                let path = try converter.renderedPath(
                    template: "/orders/{}",
                    parameters: [input.path.id]
                )
                var request: HTTPTypes.HTTPRequest = .init(soar_path: path, method: .post)
                suppressMutabilityWarning(&request)
                try converter.setQueryItemAsURI(
                    in: &request,
                    style: .form,
                    explode: true,
                    name: "dry",
                    value: input.query.dry
                )
                let body: HTTPBody?
                switch input.body {
                case .json(let value):
                    body = try converter.setRequiredRequestBodyAsJSON(
                        value,
                        headerFields: &request.headerFields,
                        contentType: "application/json; charset=utf-8"
                    )
                }
                return (request, body)
            },
            deserializer: { response, responseBody in
                switch response.status.code {
                case 200:
                    let body: Operations.PlaceOrder.Output.Ok.Body =
                        try await converter.getResponseBodyAsJSON(
                            Components.Schemas.Order.self,
                            from: responseBody,
                            transforming: { value in .json(value) }
                        )
                    return .ok(.init(body: body))
                default:
                    return .undocumented(
                        statusCode: response.status.code,
                        .init(headerFields: response.headerFields, body: responseBody)
                    )
                }
            }
        )
    }

    func uploadPicture(
        _ input: Operations.UploadPicture.Input
    ) async throws -> Operations.UploadPicture.Output {
        try await client.send(
            input: input,
            forOperation: Operations.UploadPicture.id,
            serializer: { input in
                let path = try converter.renderedPath(
                    template: "/orders/picture",
                    parameters: []
                )
                var request: HTTPTypes.HTTPRequest = .init(soar_path: path, method: .put)
                suppressMutabilityWarning(&request)
                let body: HTTPBody?
                switch input.body {
                case .binary(let value):
                    body = try converter.setRequiredRequestBodyAsBinary(
                        value,
                        headerFields: &request.headerFields,
                        contentType: "application/octet-stream"
                    )
                }
                return (request, body)
            },
            deserializer: { response, responseBody in
                switch response.status.code {
                case 204: return .noContent
                default:
                    return .undocumented(
                        statusCode: response.status.code,
                        .init(headerFields: response.headerFields, body: responseBody)
                    )
                }
            }
        )
    }
}
