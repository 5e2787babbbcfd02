// TLS as a machine without sockets.
//
// A session is one connection's end of TLS 1.2 or 1.3, by OpenSSL. It does no I/O. Its driver feeds
// it the peer's bytes, takes the bytes to send from it, and reads and writes plain bytes in
// between:
//
//      socket ── feed(_:) ──────────────▶ ┌─────────┐ ── read(into:) ──▶ plain bytes
//                                         │ session │
//      socket ◀─ takeCiphertext(into:) ── └─────────┘ ◀── write(_:) ──── plain bytes
//
// After every call the driver sends what ``TLSSession/hasCiphertext`` announces: a read can
// complete the handshake or answer a key update, and a failure leaves the alert that tells the
// peer.
//
// A `TLSContext` has the shared state of many sessions: a listener's certificate and key, or the
// trusted authorities for an origin. `TLSContextError` has the faults of files, `TLSFailure` the
// faults of peers, and `TLSLimits` the most memory that a peer can use.
//
// Not supported: renegotiation, compression, early data (replayed requests would look like first
// ones), and any version before 1.2.

internal import COpenSSL

/// One end of a TLS connection.
///
/// It belongs to one event loop and is used from there only.
package final class TLSSession {
    /// The result of a read.
    package enum ReadOutcome: Equatable {
        /// This number of plain bytes is at the start of the buffer, at least one.
        case bytes(Int)
        /// Nothing until more bytes are fed.
        case needsInput
        /// The peer announced its last byte (close_notify).
        case closed
        /// The connection can't be used any more; send the bytes of ``hasCiphertext``, then close.
        case failed(TLSFailure)
    }

    enum Phase {
        /// Leaves to `established`, `failed`.
        case handshaking
        /// Leaves to `peerClosed`, `failed`.
        case established
        /// The peer sent close_notify; writing continues. Leaves to `failed`.
        case peerClosed
        /// Has no exit.
        case failed(TLSFailure)
    }

    let context: TLSContext
    /// Takes the sessions that a server gives.
    let resumption: TLSResumption?
    let pipe = CiphertextPipe()
    /// The `SSL`; owned from `init` to `deinit`.
    let pointer: OpaquePointer
    var phase = Phase.handshaking
    /// Bytes that were written before the end of the handshake.
    var earlyPlaintext: [UInt8] = []
    var closesWhenEstablished = false
    var hasSentClose = false
    /// Records that were sent under the current key.
    var recordsCount = 0
    private var handshakeInputCount = 0
    /// Bytes of answers that the peer has caused since its last content.
    var answersCount = 0
    /// The last read made OpenSSL answer by itself, to a request for another handshake for example.
    /// The peer may wait for that, and send nothing more.
    var hasAnswered = false

    /// The server's end.
    ///
    /// - Throws: `library`, for lack of memory.
    package init(accepting context: TLSContext) throws(TLSFailure) {
        precondition(context.role == .server, "TLSSession: a server's context")
        self.context = context
        resumption = nil
        pointer = try Self.makePointer(context, pipe)
        SSL_set_accept_state(pointer)
        nameItself()
    }

    /// The client's end, which accepts a certificate for `host` only.
    ///
    /// - Parameters:
    ///   - context: a client's.
    ///   - host: a domain name, sent as SNI too, or an IP address, which is not (RFC 6066 §3).
    ///   - resumption: has the last session with this server and context, and takes the next one;
    ///     `nil` for a full handshake.
    /// - Throws: `library`, for lack of memory or when the name has a byte 0 or is too long.
    package init(
        connecting context: TLSContext,
        to host: String,
        resuming resumption: TLSResumption? = nil
    ) throws(TLSFailure) {
        precondition(context.role == .client, "TLSSession: a client's context")
        self.context = context
        self.resumption = resumption
        pointer = try Self.makePointer(context, pipe)
        SSL_set_connect_state(pointer)
        nameItself()
        resumption?.offer(at: pointer)
        guard Self.expect(host, at: pointer) else {
            throw TLSFailure(.library, "host name: \(OpenSSLErrors.taken().text)")
        }
    }

    deinit {
        // OpenSSL does not resume a session if it thinks that the connection ended without
        // close_notify. TLS has long dropped that rule (RFC 5246 §7.2.1).
        if context.role == .client, isEstablished {
            SSL_set_shutdown(pointer, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
        }
        // Also frees the BIO, which refers to the pipe; the pipe is freed after this.
        SSL_free(pointer)
    }

    private static func makePointer(
        _ context: TLSContext,
        _ pipe: CiphertextPipe
    ) throws(TLSFailure) -> OpaquePointer {
        ERR_clear_error()
        guard let pointer = SSL_new(context.pointer) else {
            throw TLSFailure(.library, OpenSSLErrors.taken().text)
        }
        guard let bio = pipe.makeBIO(context.method) else {
            SSL_free(pointer)
            throw TLSFailure(.library, OpenSSLErrors.taken().text)
        }
        // One BIO for both directions; OpenSSL takes over its one reference.
        SSL_set_bio(pointer, bio, bio)
        return pointer
    }

    /// The session of an `SSL`. OpenSSL calls back only during calls by the session, and the
    /// session frees the `SSL`.
    static func of(_ pointer: OpaquePointer?) -> TLSSession? {
        guard let pointer, let data = copenssl_ssl_get_app_data(pointer) else { return nil }
        return Unmanaged<TLSSession>.fromOpaque(data).takeUnretainedValue()
    }

    private func nameItself() {
        _ = copenssl_ssl_set_app_data(pointer, Unmanaged.passUnretained(self).toOpaque())
    }

    private static func expect(_ host: String, at pointer: OpaquePointer) -> Bool {
        guard !host.isEmpty, !host.utf8.contains(0) else { return false }
        let parameters = SSL_get0_param(pointer)
        if X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1 { return true }
        ERR_clear_error()
        SSL_set_hostflags(pointer, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        return SSL_set1_host(pointer, host) == 1 && copenssl_ssl_set_host_name(pointer, host) == 1
    }
}

// The session's state.
extension TLSSession {
    /// Whether the handshake has succeeded.
    package var isEstablished: Bool {
        switch phase {
        case .established, .peerClosed: true
        case .handshaking, .failed: false
        }
    }

    /// Why it failed, if it did.
    package var failure: TLSFailure? {
        switch phase {
        case .failed(let failure): failure
        case .handshaking, .established, .peerClosed: nil
        }
    }

    /// Whether the handshake has resumed an earlier session.
    package var isResumed: Bool { isEstablished && SSL_session_reused(pointer) == 1 }

    /// Whether the peer has announced its last byte (close_notify).
    package var isEndedByPeer: Bool { if case .peerClosed = phase { true } else { false } }

    /// Whether there are bytes to send.
    package var hasCiphertext: Bool { !pipe.output.isEmpty }

    /// The version and cipher suite, such as `TLSv1.3 TLS_AES_128_GCM_SHA256`; `nil` before the
    /// handshake has ended.
    package var suite: String? {
        guard isEstablished else { return nil }
        // Constant texts of OpenSSL's.
        let version = SSL_get_version(pointer).map { String(cString: $0) }
        let cipher = SSL_CIPHER_get_name(SSL_get_current_cipher(pointer))
            .map { String(cString: $0) }
        return "\(version ?? "?") \(cipher ?? "?")"
    }
}

// Ciphertext.
extension TLSSession {
    /// Feeds bytes of the peer; a read then returns their meaning.
    package func feed(_ bytes: Span<UInt8>) {
        guard admit(bytes) else { return }
        pipe.keep(bytes)
    }

    /// Moves the bytes to send after those in `destination`; without a copy when that is empty.
    package func takeCiphertext(into destination: inout [UInt8]) { pipe.take(into: &destination) }

    /// Checks fed bytes before OpenSSL does: their number, and whether they can be TLS at all.
    func admit(_ bytes: Span<UInt8>) -> Bool {
        if case .failed = phase { return false }
        guard !bytes.isEmpty else { return true }
        guard pipe.unreadCount + bytes.count <= TLSLimits.unreadCiphertextMax else {
            return fail(.limitReached, "more than \(TLSLimits.unreadCiphertextMax) bytes unread")
        }
        guard case .handshaking = phase else { return true }
        if handshakeInputCount == 0, !isRecordStart(bytes[0]) { return false }
        handshakeInputCount += bytes.count
        guard handshakeInputCount <= TLSLimits.handshakeInputMax else {
            return fail(.limitReached, "a handshake of over \(TLSLimits.handshakeInputMax) bytes")
        }
        return true
    }

    /// RFC 8446 §5.1: a record begins with its content type, 20 to 24. A letter begins a method (or
    /// `HTTP/1.1`, from an origin): the peer speaks HTTP without TLS. OpenSSL knows only some
    /// methods.
    private func isRecordStart(_ byte: UInt8) -> Bool {
        switch byte {
        case 20...24: true
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): fail(.plainHTTP, "the first byte is a letter")
        default: fail(.notTLS, "the first byte is \(byte)")
        }
    }

    @discardableResult
    func fail(_ reason: TLSFailure.Reason, _ detail: String) -> Bool {
        phase = .failed(TLSFailure(reason, detail))
        earlyPlaintext = []
        return false
    }

    func failed() -> TLSFailure {
        let failure = TLSFailure(
            OpenSSLErrors.taken(),
            verification: SSL_get_verify_result(pointer)
        )
        phase = .failed(failure)
        earlyPlaintext = []
        return failure
    }
}
