import HTTPWire
import Services
import Verification

/// Why the gateway answers a request itself, or cuts its response off.
///
/// The status, the text and the metric that follow are in one table, which is not the machine's.
enum Reply: Equatable, Sendable {
    /// The verdict about the request. It is counted with the rule's verdicts.
    case refused(Refusal)
    /// A limit or a failure, and no verdict.
    case declined(Refusal)
    /// The request can't be read, or not in one way.
    case malformed(Malformed.Reason)
    /// No server took the request.
    case unreached(OriginFailure)
    /// The server failed that had the request, before its response began or in the middle of it.
    case failed(OriginFailure)
    /// The content did not come, or came too slowly.
    case contentTimeout
    /// The request has passed here before (RFC 9110 §7.6: a gateway must not send a request to
    /// itself for ever).
    case loopDetected
    /// An OPTIONS request ends here (RFC 9110 §7.6.2).
    case lastHop
    /// What a service says.
    case service
    /// The proxy that has asked may forward the request.
    case allowed
}

/// What becomes of the client's connection.
enum ClientFate: Equatable, Sendable {
    /// All of the request was read: another may follow.
    case goesOn
    /// Content was not read. If all of it is here, it is dropped, and another request may
    /// follow; or else as `lingers`.
    case skips
    /// The rest of the request is read away for a bounded time, or the connection ends.
    case lingers
}
