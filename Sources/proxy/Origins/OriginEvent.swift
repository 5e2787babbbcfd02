package import TLSSession

/// What happens on the way to a server.
package enum OriginEvent {
    case connectBegan
    case connectFailed
    /// The handshake failed; a connect that failed follows.
    case handshakeFailed(TLSFailure)
    case connectionReused
    /// A request waits for a place at a server.
    case queued
    /// It waits no more, after so many nanoseconds.
    case dequeued(UInt64)
    /// A request found the queue full, or had to leave it for another one.
    case queueFull
    /// A request waited too long.
    case queueTimeout
}
