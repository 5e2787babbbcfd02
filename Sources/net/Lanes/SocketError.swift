import Glibc

/// A system call on a socket that failed.
public struct SocketError: Error, Equatable, CustomStringConvertible {
    /// The call, as in its manual page.
    public let call: String
    /// The value of errno.
    public let code: Int32

    /// Takes errno as the failed call left it.
    package init(_ call: String, code: Int32 = errno) {
        self.call = call
        self.code = code
    }

    /// A peer that does not answer a connect in the time it has.
    package static let connectTimedOut = SocketError("connect", code: ETIMEDOUT)

    /// A peer with which a TLS handshake failed.
    package static let handshakeFailed = SocketError("handshake", code: EPROTO)

    /// Whether the peer did not answer in time.
    package var isTimeout: Bool { code == ETIMEDOUT }

    /// Whether this process or machine had no descriptor, memory or watch left: no fault of the
    /// peer. ENOSPC is epoll_ctl's, at `fs.epoll.max_user_watches`.
    package var isShortage: Bool { [EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC].contains(code) }

    /// The call and the system's words for the error.
    public var description: String { "\(call): \(String(cString: strerror(code)))" }
}
