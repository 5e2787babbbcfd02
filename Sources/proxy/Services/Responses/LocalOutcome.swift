package import HTTPWire
package import Verification

/// Why the gateway answers a request itself. ``row`` has the answer.
package enum LocalOutcome: Hashable, Sendable {
    /// A verdict about the request.
    case refused(Refusal)
    /// A verdict about a call of the enrolment endpoints.
    case notEnrolled(Refusal)
    /// It is no well-formed HTTP request.
    case malformed(Malformed.Reason)
    /// The origin gave no response that could be relayed.
    case failed(OriginFailure)
    /// It can't be served here or now, for a reason of HTTP or of a service.
    case fault(LocalFault)
    /// A service has done its work.
    case done(LocalSuccess)
}

extension LocalOutcome {
    /// The row of the outcome in the table of local responses.
    package var row: LocalRow {
        switch self {
        case .refused(let refusal): .refused(refusal)
        case .notEnrolled(let refusal): .notEnrolled(refusal)
        case .malformed(let reason): .malformed(reason)
        case .failed(let failure): .failed(failure)
        case .fault(let fault): .fault(fault)
        case .done(let success): .done(success)
        }
    }

    /// Whether the client's connection ends with the answer, whatever was read of the request.
    ///
    /// - toQuestion: whether another proxy asks about the request. If that request is malformed,
    ///   the proxy's connection stays, since it carries questions about other requests.
    package func endsConnection(toQuestion: Bool) -> Bool {
        if toQuestion, case .malformed = self { return false }
        return row.ending == .connection
    }

    /// The wire's `reason`, the metric label and the log's `problem`; empty without a fault.
    package var reason: String {
        switch self {
        case .refused(let refusal), .notEnrolled(let refusal): refusal.rawValue
        case .malformed(let reason): reason.rawValue
        case .failed(let failure): failure.rawValue
        case .fault(let fault): fault.rawValue
        case .done: ""
        }
    }
}

/// The work that a service has done.
package enum LocalSuccess: CaseIterable, Sendable {
    /// The answer has the requested data.
    case served
    /// The client already has the requested data (RFC 9110 §15.4.5).
    case unchanged
    /// A new key is enrolled.
    case created
    /// The client may send its content (RFC 9110 §15.2.1).
    case continued
    /// OPTIONS with Max-Forwards: 0 ends here (RFC 9110 §7.6.2).
    case lastHop
    /// The proxy that has asked may forward the request.
    case allowed
}

extension LocalRow {
    static func done(_ success: LocalSuccess) -> LocalRow {
        switch success {
        case .served, .lastHop, .allowed: LocalRow(200, .nobody, .unsaid, "")
        case .unchanged: LocalRow(304, .nobody, .unsaid, "")
        case .continued: LocalRow(100, .nobody, .unsaid, "")
        case .created: LocalRow(201, .nobody, .unsaid, "")
        }
    }
}

/// A failure on the origin's side before a response began. The raw value is the wire's `reason` and
/// the log's `problem`: add, do not rename.
package enum OriginFailure: String, CaseIterable, Sendable {
    case originUnreachable = "origin-unreachable"
    /// No server is up, and none was asked.
    case originDown = "origin-down"
    /// All servers have the most connections allowed, and the queue is full.
    case originQueueFull = "origin-queue-full"
    /// No server had a place for a connection in time.
    case originQueueTimeout = "origin-queue-timeout"
    /// The TLS handshake failed; the log's `origin_tls` says why.
    case originTLSFailed = "origin-tls-failed"
    /// The server takes the connection and does not speak HTTP/2, which its origin asks for.
    case originNotHTTP2 = "origin-not-http2"
    /// The server says that it has not processed the request, and takes it in no other attempt.
    case originRefused = "origin-refused"
    /// No descriptor or memory is left for a connection. That is the gateway's fault, not a
    /// server's.
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
        case .originNotHTTP2:
            LocalRow(502, .origin, .unsaid, "No server of the origin speaks HTTP/2.")
        case .originRefused: later(503, .origin, "The origin takes no more requests now.")
        case .outOfDescriptors: later(503, .gateway, "The gateway can't connect now.")
        case .originClosed:
            LocalRow(502, .origin, .unsaid, "The origin closed its connection without an answer.")
        case .originTimeout: LocalRow(504, .origin, .unsaid, "The origin did not answer in time.")
        case .responseMalformed:
            LocalRow(
                502,
                .origin,
                .unsaid,
                "The origin's answer can't be read.",
                grpc: .internalError
            )
        case .tooManyInterimResponses:
            LocalRow(
                502,
                .origin,
                .unsaid,
                "The origin sent too many interim answers.",
                grpc: .internalError
            )
        }
    }
}
