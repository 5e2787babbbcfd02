package import TLSSession

/// Why a connection can't go on.
package enum ConnectionError: Error {
    /// A system call failed.
    case socket(SocketError)
    /// The TLS machine refused what the peer sent.
    case tls(TLSFailure)
    /// The TLS machine would not take bytes to send.
    case tlsWrite
    /// The peer ended a TLS connection without saying so: what was read may be cut short.
    case truncated
    /// It was closed on this side.
    case closed
}
