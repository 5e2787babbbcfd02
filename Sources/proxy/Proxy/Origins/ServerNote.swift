package import HTTPWire

/// A note about a server, with its time.
package struct ServerNote<What: Sendable>: Sendable {
    package let what: What
    /// Milliseconds since 1970.
    package let at: Int64
}

/// The failure of a server. The raw value is shown to operators: add, do not rename.
package enum ServerFailure: Sendable, Equatable {
    case refused
    case connectTimeout
    /// It took the connection, and the TLS handshake failed.
    case handshake
    /// It took the connection, and does not speak HTTP/2.
    case noHTTP2
    /// It has exceeded a limit of an HTTP/2 connection.
    case exceeded(HTTP2Excess)
    /// It did not begin a response in time.
    case timeout
    /// It ended the connection before its response was complete.
    case closed
    case malformed
    /// A status that counts as a failure.
    case status(Int)

    package var text: String {
        switch self {
        case .refused: "refused"
        case .connectTimeout: "connect-timeout"
        case .handshake: "tls-failed"
        case .noHTTP2: "no-http2"
        case .exceeded(let excess): excess.rawValue
        case .timeout: "timeout"
        case .closed: "closed"
        case .malformed: "malformed"
        case .status(let status): "status-\(status)"
        }
    }
}

/// The state of a server. The raw value is shown to operators: add, do not rename.
package enum ServerCondition: String, Sendable {
    /// No fault is known.
    case up
    /// It takes no connection, and is skipped while another one does.
    case unreachable
    /// It takes requests and answers none in time, and is skipped while another one does.
    case silent
    /// Consecutive requests failed; it is skipped for a while.
    case ejected
    /// Its checks fail; it gets no request.
    case down
    /// An operator drains it; it gets no request.
    case drained

    /// Whether it can't serve because of a failed connect or check. A client can't cause these.
    package var isOut: Bool {
        switch self {
        case .up, .silent, .ejected: false
        case .unreachable, .down, .drained: true
        }
    }
}
