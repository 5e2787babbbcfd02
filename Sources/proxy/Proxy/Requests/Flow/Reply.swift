import HTTPWire
import Services
import Verification

/// Why the gateway answers a request itself, or cuts its response off.
///
/// A table outside of the machine has the status, the text and the metric of each.
enum Reply: Equatable, Sendable {
    /// The verdict about the request. It is counted with the rule's verdicts.
    case refused(Refusal)
    /// A limit or a failure, without a verdict.
    case declined(Refusal)
    /// The request can't be read, or has several interpretations.
    case malformed(Malformed.Reason)
    /// No server took the request.
    case unreached(OriginFailure)
    /// The server with the request failed, before its response began or in the middle of it.
    case failed(OriginFailure)
    /// The content did not come, or came too slowly.
    case contentTimeout
    /// The request has passed here before (RFC 9110 §7.6: a gateway must not send a request to
    /// itself for ever).
    case loopDetected
    /// An OPTIONS request ends here (RFC 9110 §7.6.2).
    case lastHop
    /// The answer of a service.
    case service
    /// The proxy that has asked may forward the request.
    case allowed
}

/// What happens to the client's connection.
enum ClientFate: Equatable, Sendable {
    /// All of the request was read: another may follow.
    case goesOn
    /// Content was not read. If all of it is here, or a little is on its way, it is dropped, and
    /// another request may follow; otherwise as `lingers`.
    case skips
    /// The rest of the request is read and discarded for a bounded time, or the connection ends.
    case lingers
}
