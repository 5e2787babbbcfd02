package import TLSSession

/// Why no server took a connection.
package enum DialFault: Equatable, Sendable {
    /// The last one refused it, or can't be reached; or there is no server.
    case refused
    /// None is up: nobody was asked.
    case noneUp
    /// The last one did not answer.
    case timedOut
    /// The last one took it, and the TLS handshake failed.
    case handshakeFailed(TLSFailure)
    /// All servers have as many connections as they may, and so many requests wait already.
    case queueFull
    /// No server had a place for a connection in time.
    case queueTimeout
    /// There is no descriptor or memory: the gateway's own trouble, and no server's.
    case outOfDescriptors
}
