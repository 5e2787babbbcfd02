internal import COpenSSL
import Synchronization

/// The last TLS session with a server. The next connection to it resumes it (RFC 8446 §2.2).
///
/// Shared by the event loops. It holds only the newest session of the server: each is good for any
/// later connection to the server, and the newest for the longest time. A session is good for the
/// authorities and the name with which it was verified, so another context needs its own object.
package final class TLSResumption: Sendable {
    /// The `SSL_SESSION` as a number, of which this owns one reference; 0 for none. OpenSSL counts
    /// references atomically, and no code changes a session after the hand-over.
    private let session = Mutex<UInt>(0)

    package init() {}

    deinit { forget() }

    package var isKnown: Bool { session.withLock { $0 != 0 } }

    /// Replaces the session, and takes over OpenSSL's reference.
    func keep(_ next: OpaquePointer) { replace(UInt(bitPattern: next)) }

    /// Releases the session: the server does not accept it any more.
    package func forget() { replace(0) }

    private func replace(_ next: UInt) {
        let old = session.withLock { session in
            defer { session = next }
            return session
        }
        SSL_SESSION_free(OpaquePointer(bitPattern: old))
    }

    /// Offers the session to the server.
    func offer(at pointer: OpaquePointer) {
        session.withLock { session in
            guard let known = OpaquePointer(bitPattern: session) else { return }
            // `SSL_set_session` takes a reference of its own.
            _ = SSL_set_session(pointer, known)
        }
    }

    /// Makes the client's sessions of a context keep the sessions that servers give.
    static func install(in context: OpaquePointer) {
        let mode = Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL)
        _ = copenssl_ssl_ctx_set_session_cache_mode(context, mode)
        SSL_CTX_sess_set_new_cb(context) { ssl, session in
            guard let keeper = TLSSession.of(ssl)?.resumption, let session else { return 0 }
            keeper.keep(session)
            return 1
        }
    }
}
