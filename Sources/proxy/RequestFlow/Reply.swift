package import HTTPWire
package import Verification

/// Why the gateway answers a request itself, or cuts its response off.
///
/// The status, the text and the metric that follow are in one table, which is not the machine's.
package enum Reply: Equatable, Sendable {
    /// The verdict about the request. It is counted with the rule's verdicts.
    case refused(Refusal)
    /// A limit or a failure, and no verdict.
    case declined(Refusal)
    /// The request can't be read, or not in one way.
    case malformed(Malformed.Reason)
    /// The origin failed before its response began, or in the middle of it.
    case failed(OriginFault)
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

/// What went wrong on the origin's side.
package enum OriginFault: Equatable, Sendable {
    /// No server took a connection.
    case unreachable
    /// No server took a connection, and the last one did not answer.
    case connectTimeout
    /// No server is up, and none was asked.
    case noneUp
    /// All servers have as many connections as they may, and so many requests wait already.
    case queueFull
    /// No server had a place for a connection in time.
    case queueTimeout
    /// The last server took the connection, and the TLS handshake failed.
    case handshakeFailed
    /// No descriptor or memory for a connection: the gateway's own trouble, and no server's.
    case outOfDescriptors
    /// The connection broke.
    case closed
    /// Nothing came in time.
    case timeout
    /// What came is no response.
    case malformed(Malformed.Reason)
    case tooManyInterimResponses
}
