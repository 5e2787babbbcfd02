package import TLSSession

/// What happens on the way to a server.
package enum OriginEvent {
    case connectBegan
    case connectFailed
    /// The handshake failed; a connect that failed follows.
    case handshakeFailed(TLSFailure)
    case connectionReused
}
