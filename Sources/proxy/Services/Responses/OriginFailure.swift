/// What went wrong on the origin's side before a response began. The raw value is the wire's
/// `reason` and the log's `problem`: add, do not rename.
package enum OriginFailure: String, CaseIterable, Sendable {
    case originUnreachable = "origin-unreachable"
    /// No server is up, and none was asked.
    case originDown = "origin-down"
    /// All servers have as many connections as they may, and so many requests wait already.
    case originQueueFull = "origin-queue-full"
    /// No server had a place for a connection in time.
    case originQueueTimeout = "origin-queue-timeout"
    /// The TLS handshake failed; the log's `origin_tls` says why.
    case originTLSFailed = "origin-tls-failed"
    /// No descriptor or memory is left for a connection: the gateway's own trouble, not a server's.
    case outOfDescriptors = "out-of-descriptors"
    case originClosed = "origin-closed"
    case originTimeout = "origin-timeout"
    case responseMalformed = "response-malformed"
    case tooManyInterimResponses = "too-many-interim-responses"
}

extension LocalRow {
    /// The rows of an origin's failures: RFC 9110 §15.6.3, §15.6.4, §15.6.5.
    static func failed(_ failure: OriginFailure) -> LocalRow {
        switch failure {
        case .originUnreachable:
            LocalRow(502, .origin, .unsaid, "No server of the origin can be reached.")
        case .originDown: later(503, .origin, "No server of the origin is up.")
        case .originQueueFull: later(503, .origin, "Too many requests wait for the origin.")
        case .originQueueTimeout: later(503, .origin, "The origin had no place in time.")
        case .originTLSFailed:
            LocalRow(502, .origin, .unsaid, "No server of the origin can be trusted or understood.")
        case .outOfDescriptors: later(503, .gateway, "The gateway can't connect now.")
        case .originClosed:
            LocalRow(502, .origin, .unsaid, "The origin closed its connection without an answer.")
        case .originTimeout: LocalRow(504, .origin, .unsaid, "The origin did not answer in time.")
        case .responseMalformed:
            LocalRow(502, .origin, .unsaid, "The origin's answer can't be read.")
        case .tooManyInterimResponses:
            LocalRow(502, .origin, .unsaid, "The origin sent too many interim answers.")
        }
    }
}
