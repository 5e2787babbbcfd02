import HTTPWire

/// How a server is asked whether it is well: `check`. Times are in milliseconds.
package struct ServerCheck: Hashable, Sendable {
    /// `path`, mandatory without `grpc`: in origin-form.
    package var path = "/"
    /// `grpc`: the service of gRPC's health protocol that is asked for instead, `server` for the
    /// whole server; `nil`, the default, for a check by `path`.
    package var grpc: String?
    /// `host`: the value of Host; `nil`, the default, for the server as it is written.
    package var host: String?
    /// `status`: of a server that is well. Default 200-399 (HAProxy's).
    package var statuses = 200...399
    /// `interval`: from one check to the next. Default 5s, 10ms…1h.
    package var interval: UInt64 = 5_000
    /// `timeout`: for a whole check. Default 2s, 10ms…1h.
    package var timeout: UInt64 = 2_000
    /// `healthy`: checks one after another that bring a server back. Default 2, 1…100.
    package var healthy = 2
    /// `unhealthy`: checks one after another that take it out. Default 3, 1…100.
    package var unhealthy = 3

    package init() {}

    /// The request of a check.
    ///
    /// - server: as it is written.
    package func request(to server: String) -> HTTPRequest {
        let authority = host ?? server
        guard let grpc else { return HTTPRequest(.get, path, authority: authority) }
        var request = HTTPRequest(.post, "/grpc.health.v1.Health/Check", authority: authority)
        request.fields = [
            ("Content-Type", "application/grpc"), ("TE", "trailers"),
            ("grpc-timeout", "\(timeout)m"),
        ]
        request.content = Self.healthRequest(of: grpc == Self.wholeServer ? "" : grpc)
        return request
    }

    /// The word for the whole server.
    package static let wholeServer = "server"
    /// The most bytes of a service's name, so that each length is one byte.
    package static let serviceMax = 120

    /// `HealthCheckRequest { string service = 1; }` in a message of gRPC: a flag, four bytes of
    /// length, and the protobuf.
    private static func healthRequest(of service: String) -> [UInt8] {
        let name = Array(service.utf8)
        let message: [UInt8] = name.isEmpty ? [] : [0x0A, UInt8(name.count)] + name
        return [0, 0, 0, 0, UInt8(message.count)] + message
    }

    /// `HealthCheckResponse { ServingStatus status = 1; }` with `SERVING`, which is 1.
    private static let serving: [UInt8] = [0, 0, 0, 0, 2, 0x08, 0x01]

    package func result(of response: HTTPResponse) -> CheckResult {
        guard grpc != nil else {
            return statuses.contains(response.status) ? .passed : .status(response.status)
        }
        guard response.status == 200 else { return .status(response.status) }
        // A call that fails at once has its status in the head.
        let trailers = response.trailers + response.fields
        let status = trailers.first { $0.name.lowercased() == "grpc-status" }
        guard let status, let number = Int(status.value) else { return .failed }
        guard number == 0 else { return .grpcStatus(number) }
        return response.content == Self.serving ? .passed : .notServing
    }
}

/// The result of a check.
package enum CheckResult: Sendable, Equatable {
    case passed
    /// The server answered with another status.
    case status(Int)
    /// The call of gRPC's health protocol failed, with this status.
    case grpcStatus(Int)
    /// The server says by gRPC's health protocol that it does not serve.
    case notServing
    /// It did not answer in time.
    case timeout
    /// It takes no connection, or gave no response.
    case failed

    package var text: String {
        switch self {
        case .passed: "passed"
        case .status(let status): "status-\(status)"
        case .grpcStatus(let status): "grpc-status-\(status)"
        case .notServing: "not-serving"
        case .timeout: "timeout"
        case .failed: "failed"
        }
    }
}

/// The results of a server's checks, as far as they count. A server without a check so far is used.
struct CheckStreak {
    enum Change: Equatable { case up, down }

    private(set) var isDown = false
    /// Consecutive results against the current state.
    private var contrary = 0

    mutating func took(_ result: CheckResult, _ check: ServerCheck) -> Change? {
        guard (result == .passed) == isDown else {
            contrary = 0
            return nil
        }
        contrary += 1
        guard contrary >= (isDown ? check.healthy : check.unhealthy) else { return nil }
        contrary = 0
        isDown.toggle()
        return isDown ? .down : .up
    }
}
