// The names are documented by the library that they stand in for.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

public import Foundation
public import HTTPTypes

public struct Configuration: Sendable {
    public init() {}
}

public struct ClientError: Error {
    public let operationID: String
    public let underlyingError: any Error
}

public struct UndocumentedPayload: Sendable, Hashable {
    public var headerFields: HTTPFields
    public var body: HTTPBody?

    public init(headerFields: HTTPFields = [:], body: HTTPBody? = nil) {
        (self.headerFields, self.body) = (headerFields, body)
    }

    public static func == (first: Self, second: Self) -> Bool {
        first.headerFields == second.headerFields && first.body === second.body
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(headerFields) }
}

/// What generated clients send with: the middlewares in their order, then the transport.
@_spi(Generated) public struct UniversalClient: Sendable {
    public let serverURL: URL
    public let converter: Converter
    public var transport: any ClientTransport
    public var middlewares: [any ClientMiddleware]

    public init(
        serverURL: URL,
        configuration: Configuration = .init(),
        transport: any ClientTransport,
        middlewares: [any ClientMiddleware] = []
    ) {
        (self.serverURL, converter) = (serverURL, Converter(configuration: configuration))
        (self.transport, self.middlewares) = (transport, middlewares)
    }

    public func send<OperationInput, OperationOutput>(
        input: OperationInput,
        forOperation operationID: String,
        serializer: @Sendable (OperationInput) throws -> (HTTPRequest, HTTPBody?),
        deserializer: @Sendable (HTTPResponse, HTTPBody?) async throws -> OperationOutput
    ) async throws -> OperationOutput where OperationInput: Sendable, OperationOutput: Sendable {
        typealias Next =
            @Sendable (HTTPRequest, HTTPBody?, URL) async throws -> (HTTPResponse, HTTPBody?)
        let transport = transport
        var next: Next = { request, body, url in
            try await transport.send(request, body: body, baseURL: url, operationID: operationID)
        }
        for middleware in middlewares.reversed() {
            let rest = next
            next = { request, body, url in
                try await middleware.intercept(
                    request,
                    body: body,
                    baseURL: url,
                    operationID: operationID,
                    next: rest
                )
            }
        }
        do {
            let (request, body) = try serializer(input)
            let (response, content) = try await next(request, body, serverURL)
            return try await deserializer(response, content)
        } catch {
            throw ClientError(operationID: operationID, underlyingError: error)
        }
    }
}

@_spi(Generated) public struct Converter: Sendable {
    private struct NoBody: Error {}

    init(configuration: Configuration) {}

    public func renderedPath(template: String, parameters: [any Encodable]) throws -> String {
        parameters.reduce(template) { path, parameter in
            guard let place = path.range(of: "{}") else { return path }
            let text = "\(parameter)".addingPercentEncoding(withAllowedCharacters: .alphanumerics)
            return path.replacingCharacters(in: place, with: text ?? "")
        }
    }

    public func setQueryItemAsURI<T: Encodable>(
        in request: inout HTTPRequest,
        style: ParameterStyle?,
        explode: Bool?,
        name: String,
        value: T?
    ) throws {
        guard let value else { return }
        let path = request.path ?? ""
        let text = "\(value)".addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        request.path = path + (path.contains("?") ? "&" : "?") + "\(name)=\(text)"
    }

    public func setRequiredRequestBodyAsJSON<T: Encodable>(
        _ value: T,
        headerFields: inout HTTPFields,
        contentType: String
    ) throws -> HTTPBody {
        headerFields[.contentType] = contentType
        return HTTPBody(try JSONEncoder().encode(value))
    }

    public func setRequiredRequestBodyAsBinary(
        _ value: HTTPBody,
        headerFields: inout HTTPFields,
        contentType: String
    ) throws -> HTTPBody {
        headerFields[.contentType] = contentType
        return value
    }

    public func getResponseBodyAsJSON<T: Decodable, C>(
        _ type: T.Type,
        from data: HTTPBody?,
        transforming transform: (T) -> C
    ) async throws -> C {
        guard let data else { throw NoBody() }
        let bytes = try await Data(collecting: data, upTo: .max)
        return transform(try JSONDecoder().decode(type, from: bytes))
    }
}

public enum ParameterStyle: Sendable {
    case form, simple, deepObject
}

extension HTTPRequest {
    @_spi(Generated) public init(soar_path path: String, method: Method) {
        self.init(method: method, scheme: nil, authority: nil, path: path)
    }
}

@_spi(Generated) public func suppressMutabilityWarning<T>(_ value: inout T) {}
