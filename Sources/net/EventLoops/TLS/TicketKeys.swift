internal import COpenSSL
import Synchronization

/// The keys under which clients keep their sessions (tickets, RFC 8446 §4.6.1 and RFC 5077).
///
/// Listeners and event loops share them, and a reload keeps them. Otherwise all clients would do a
/// full handshake at once after a reload. They go from this process's memory only to that of its
/// successor, so a restart ends them. A key makes tickets for ``rotationSeconds``, and opens them
/// while one of them may be good.
package final class TicketKeys: Sendable {
    /// The time for which one key makes tickets: an hour. A thief of a key can decrypt TLS 1.2
    /// sessions that its tickets resumed, so a key is not kept longer than it is needed.
    package static let rotationSeconds: Int64 = 3_600
    /// The lifetime of a ticket: two hours. RFC 8446 §4.6.1 allows a week.
    package static let lifetimeSeconds: Int64 = 7_200

    /// More keys than ever open tickets.
    private static let keysMax = 16

    private struct Key {
        static let nameCount = 16
        static let bytesCount = 80
        /// 16 bytes that the ticket shows, 32 for AES-256-CBC, 32 for HMAC-SHA-256.
        let bytes: [UInt8]
        let madeAt: Int64

        var name: ArraySlice<UInt8> { bytes[..<Self.nameCount] }
        var cipher: ArraySlice<UInt8> { bytes[Self.nameCount..<48] }
        var mac: ArraySlice<UInt8> { bytes[48...] }

        init(at seconds: Int64) {
            var drawn = [UInt8](repeating: 0, count: Self.bytesCount)
            guard RAND_bytes(&drawn, Int32(drawn.count)) == 1 else {
                preconditionFailure("TicketKeys: no randomness")
            }
            bytes = drawn
            madeAt = seconds
        }

        init(_ bytes: [UInt8], madeAt: Int64) {
            self.bytes = bytes
            self.madeAt = madeAt
        }
    }

    /// The keys, the newest first.
    private let keys: Mutex<[Key]>

    /// Draws the first key. All times are seconds of one clock that never goes back.
    package init(now: Int64 = 0) { keys = Mutex([Key(at: now)]) }

    /// Draws a new key when it is time, and removes keys whose tickets have all expired.
    package func rotate(now: Int64) {
        keys.withLock { keys in
            if let newest = keys.first, now &- newest.madeAt >= Self.rotationSeconds {
                keys.insert(Key(at: now), at: 0)
            }
            let oldest = now - Self.rotationSeconds - Self.lifetimeSeconds
            keys.removeAll { $0.madeAt <= oldest }
            if keys.isEmpty { keys = [Key(at: now)] }
        }
    }

    /// The state that the successor needs; its clock is the same. A reader of it can decrypt what
    /// clients send, so it goes to that process and nowhere else.
    package var state: [UInt8] {
        keys.withLock { keys in
            keys.flatMap { key in
                withUnsafeBytes(of: key.madeAt.bigEndian) { Array($0) } + key.bytes
            }
        }
    }

    /// Continues with the keys of another process, which replace those that were drawn here.
    ///
    /// - Returns: whether it is a valid state; if not, nothing has changed.
    package func take(_ state: [UInt8], now: Int64) -> Bool {
        let size = 8 + Key.bytesCount
        guard !state.isEmpty, state.count % size == 0, state.count / size <= Self.keysMax else {
            return false
        }
        let taken = stride(from: 0, to: state.count, by: size).map { start in
            let time = state[start..<(start + 8)].reduce(0) { $0 << 8 | UInt64($1) }
            // A key of the future would be good for too long.
            let madeAt = min(Int64(bitPattern: time), now)
            return Key(Array(state[(start + 8)..<(start + size)]), madeAt: madeAt)
        }
        keys.withLock { $0 = taken }
        return true
    }

    package var count: Int { keys.withLock { $0.count } }
}

// OpenSSL's callback: SSL_CTX_set_tlsext_ticket_key_evp_cb(3).
extension TicketKeys {
    /// Prepares to make a ticket; 1 for success, -1 for a failure.
    private func seal(
        name: UnsafeMutablePointer<UInt8>,
        vector: UnsafeMutablePointer<UInt8>,
        cipher: OpaquePointer?,
        mac: OpaquePointer?
    ) -> Int32 {
        guard let key = keys.withLock({ $0.first }), RAND_bytes(vector, 16) == 1 else { return -1 }
        // OpenSSL has room for 16 bytes of the name, and for the AES vector, which is as long.
        for (place, byte) in key.name.enumerated() { name[place] = byte }
        let isReady =
            key.cipher.withUnsafeBufferPointer {
                EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nil, $0.baseAddress, vector)
            } == 1 && Self.begin(mac, key.mac)
        return isReady ? 1 : -1
    }

    /// Prepares to open a ticket; 0 for a ticket of an unknown key, 2 for one that is to be
    /// renewed.
    private func open(
        name: UnsafeMutablePointer<UInt8>,
        vector: UnsafeMutablePointer<UInt8>,
        cipher: OpaquePointer?,
        mac: OpaquePointer?,
        isReusable: Bool
    ) -> Int32 {
        // As above.
        let wanted = UnsafeBufferPointer(start: name, count: Key.nameCount)
        let found = keys.withLock { keys in
            keys.firstIndex { $0.name.elementsEqual(wanted) }.map { (keys[$0], $0) }
        }
        guard let (key, place) = found else { return 0 }
        let isReady =
            key.cipher.withUnsafeBufferPointer {
                EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nil, $0.baseAddress, vector)
            } == 1 && Self.begin(mac, key.mac)
        guard isReady else { return -1 }
        // A ticket of TLS 1.3 is for one use (RFC 8446 §C.4).
        return place == 0 && isReusable ? 1 : 2
    }

    private static func begin(_ mac: OpaquePointer?, _ key: ArraySlice<UInt8>) -> Bool {
        key.withUnsafeBufferPointer { copenssl_ticket_mac($0.baseAddress, $0.count, mac) == 1 }
    }

    /// Makes the sessions of a context use the keys of its ``TLSContext``.
    static func install(in context: OpaquePointer) {
        SSL_CTX_set_timeout(context, Int(lifetimeSeconds))
        SSL_CTX_set_tlsext_ticket_key_evp_cb(context) { ssl, name, vector, cipher, mac, isMade in
            guard let keys = TLSSession.of(ssl)?.context.tickets, let name, let vector else {
                return -1
            }
            if isMade == 1 {
                return keys.seal(name: name, vector: vector, cipher: cipher, mac: mac)
            }
            let isReusable = SSL_version(ssl) < TLS1_3_VERSION
            return keys.open(
                name: name,
                vector: vector,
                cipher: cipher,
                mac: mac,
                isReusable: isReusable
            )
        }
    }
}

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
