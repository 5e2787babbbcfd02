internal import COpenSSL
import Glibc

/// Certificates, keys, trust and settings that many sessions share.
///
/// It is loaded once and never changes. A reload loads another one for new sessions; current
/// sessions keep theirs.
///
/// `@unchecked Sendable`: the stored properties are constants, and OpenSSL allows `SSL_new` on one
/// `SSL_CTX` from any thread once its configuration is complete (openssl-threads(7)), which is so
/// when an initialiser has returned. A BIO method is only read after it was made.
package final class TLSContext: @unchecked Sendable {
    /// The oldest version of TLS that is accepted.
    package enum MinimumVersion: String, CaseIterable, Sendable {
        /// TLS 1.2, RFC 5246, with forward secrecy and authenticated encryption only.
        case tls12 = "1.2"
        /// TLS 1.3, RFC 8446.
        case tls13 = "1.3"
    }

    /// The authorities that a client trusts.
    package enum Trust: Equatable, Sendable {
        /// The authorities that the machine trusts.
        case system
        /// Only the certificates of a PEM file. Each of them is trusted by itself, so it may be an
        /// origin's own self-signed one.
        case file(String)
        /// All authorities: nothing is verified.
        case anyone
    }

    enum Role { case server, client }

    let role: Role
    private let handles: Handles
    /// The handles of a listener's certificates after the first.
    private let others: [Handles]
    /// The `SSL_CTX`.
    var pointer: OpaquePointer { handles.context }
    /// The `BIO_METHOD` of the sessions' pipes.
    var method: OpaquePointer { handles.method }
    /// The application protocols that are offered, the best first.
    package let protocols: [String]
    /// The keys of clients' tickets; `nil` for a client.
    let tickets: TicketKeys?
    /// The facts of the certificates, in the order of the files.
    package let certificates: [TLSCertificate]
    private let names: ServerNames
    let asksClients: Bool
    /// The lists of revoked certificates that clients' certificates are checked by.
    package let revocationLists: [RevocationList]
    /// When the first of these lists ends; `nil` without lists.
    var revocationEnd: Int64? { revocationLists.map(\.end).min() }
    /// Seconds of Unix time, for the end of clients' certificates.
    let wallSeconds: @Sendable () -> Int64

    /// Loads the certificates that a listener shows.
    ///
    /// - Parameters:
    ///   - shown: at least one. The first one is for clients that ask for no name, or for one
    ///     without a certificate.
    ///   - terms: the versions and algorithms that are accepted.
    ///   - tickets: shared by listeners, and kept by a reload.
    ///   - clients: the certificates that clients are asked for; `nil` for none.
    ///   - wallSeconds: the clock for the end of clients' certificates, in seconds of Unix time.
    /// - Throws: the first problem of a certificate or key, or that the two don't belong together.
    package init(
        showing shown: [ServerCertificate],
        terms: TLSTerms = TLSTerms(),
        tickets: TicketKeys = TicketKeys(),
        clients: ClientTrust? = nil,
        wallSeconds: @escaping @Sendable () -> Int64 = TLSContext.systemSeconds
    ) throws(TLSContextError) {
        precondition(!shown.isEmpty, "TLSContext: a certificate")
        role = .server
        protocols = terms.protocols
        self.tickets = tickets
        asksClients = clients != nil
        let lists = try clients?.revoked.map { path throws(TLSContextError) in
            try RevocationLists(reading: path)
        }
        revocationLists = lists?.facts ?? []
        self.wallSeconds = wallSeconds
        var all: [Handles] = []
        var certificates: [TLSCertificate] = []
        var names = ServerNames()
        for (index, one) in shown.enumerated() {
            let handles = try Handles(TLS_server_method(), terms)
            let certificate = try Self.load(one, into: handles)
            Self.configureServer(handles.context)
            try clients?.install(in: handles.context, lists)
            for name in certificate.names { names.add(name, index) }
            certificates.append(certificate)
            all.append(handles)
        }
        handles = all[0]
        others = Array(all.dropFirst())
        self.certificates = certificates
        self.names = names
        guard !others.isEmpty else { return }
        _ = copenssl_ssl_ctx_set_servername_callback(handles.context, Self.chooseCertificate)
    }

    /// Loads one certificate for all names.
    package convenience init(
        serverCertificateChain chain: String,
        key: String,
        terms: TLSTerms = TLSTerms()
    ) throws(TLSContextError) {
        let only = ServerCertificate(chain: chain, key: key)
        try self.init(showing: [only], terms: terms)
    }

    /// Loads the context for connections to an origin.
    ///
    /// - Parameters:
    ///   - trust: the authorities.
    ///   - shown: the certificate for a server that asks for one; its names are ignored.
    ///   - terms: the versions and algorithms that are offered.
    /// - Throws: when the file of authorities, the certificate or the key can't be used.
    package init(
        clientTrusting trust: Trust,
        showing shown: ServerCertificate? = nil,
        terms: TLSTerms = TLSTerms()
    ) throws(TLSContextError) {
        role = .client
        handles = try Handles(TLS_client_method(), terms)
        others = []
        protocols = terms.protocols
        tickets = nil
        asksClients = false
        revocationLists = []
        wallSeconds = Self.systemSeconds
        if let shown {
            certificates = [try Self.load(shown, into: handles)]
        } else {
            certificates = []
        }
        names = ServerNames()
        try Self.load(trust, into: handles.context)
        Self.configureClient(handles.context, terms.protocols)
        if case .anyone = trust { SSL_CTX_set_verify(handles.context, SSL_VERIFY_NONE, nil) }
    }
}

// Both sides.
extension TLSContext {
    /// The ALPN name of HTTP/1.1 (RFC 7301 §6).
    package static let http11 = "http/1.1"
    /// The ALPN name of HTTP/2 (RFC 9113 §3.2).
    package static let http2 = "h2"
    /// The offer of a listener for both: a client that supports both is faster with HTTP/2.
    package static let http2First = [http2, http11]
    /// The machine's clock, in seconds of Unix time.
    package static let systemSeconds: @Sendable () -> Int64 = { Int64(time(nil)) }
    /// Distinguishes our sessions from those of other servers (SSL_CTX_set_session_id_context(3)).
    private static let sessionContext = Array("portcullis".utf8)

    /// OpenSSL's two objects, freed together, also when loading fails half way.
    private final class Handles {
        let context: OpaquePointer
        let method: OpaquePointer
        /// A loaded key needed a passphrase.
        var isPassphraseWanted = false

        init(_ protocolMethod: OpaquePointer?, _ terms: TLSTerms) throws(TLSContextError) {
            ERR_clear_error()
            guard let context = SSL_CTX_new(protocolMethod) else { throw TLSContextError(.library) }
            guard let method = CiphertextPipe.makeMethod() else {
                SSL_CTX_free(context)
                throw TLSContextError(.library)
            }
            self.context = context
            self.method = method
            try terms.install(in: context)
            TLSContext.configure(context)
            refusePassphrases()
        }

        /// Otherwise OpenSSL would ask for a passphrase on the terminal.
        private func refusePassphrases() {
            // The context is ours, and calls back only while a key is loaded into it.
            let me = Unmanaged.passUnretained(self).toOpaque()
            SSL_CTX_set_default_passwd_cb_userdata(context, me)
            SSL_CTX_set_default_passwd_cb(context) { _, _, _, me in
                guard let me else { return -1 }
                Unmanaged<Handles>.fromOpaque(me).takeUnretainedValue().isPassphraseWanted = true
                return -1
            }
        }

        /// Why a key could not be loaded, from OpenSSL's last note.
        var keyProblem: TLSContextError.Reason {
            if isPassphraseWanted { return .keyEncrypted }
            switch ERR_GET_REASON(ERR_peek_last_error()) {
            case X509_R_KEY_VALUES_MISMATCH, X509_R_KEY_TYPE_MISMATCH: return .keyMismatch
            default: return .keyUnreadable
            }
        }

        deinit {
            SSL_CTX_free(context)
            BIO_meth_free(method)
        }
    }

    private static func configure(_ context: OpaquePointer) {
        // 112 bits and more everywhere, whatever the machine's openssl.cnf says.
        SSL_CTX_set_security_level(context, 2)
        _ = copenssl_ssl_ctx_set_options(
            context,
            copenssl_SSL_OP_NO_RENEGOTIATION | copenssl_SSL_OP_NO_COMPRESSION
        )
        // Empty buffers are freed: most connections are idle. A write may be repeated from another
        // address, since the caller's span lives for one call.
        _ = copenssl_ssl_ctx_set_mode(
            context,
            copenssl_SSL_MODE_RELEASE_BUFFERS | copenssl_SSL_MODE_ENABLE_PARTIAL_WRITE
                | copenssl_SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
        )
        // No session lives in memory: clients keep them as tickets.
        _ = copenssl_ssl_ctx_set_session_cache_mode(context, Int(SSL_SESS_CACHE_OFF))
    }
}

// The server's side.
extension TLSContext {
    private static func load(
        _ shown: ServerCertificate,
        into handles: Handles
    ) throws(TLSContextError) -> TLSCertificate {
        let context = handles.context
        guard SSL_CTX_use_certificate_chain_file(context, shown.chain) == 1 else {
            throw TLSContextError(.certificateUnreadable, path: shown.chain)
        }
        guard SSL_CTX_use_PrivateKey_file(context, shown.key, SSL_FILETYPE_PEM) == 1 else {
            throw TLSContextError(handles.keyProblem, path: shown.key)
        }
        guard SSL_CTX_check_private_key(context) == 1 else {
            throw TLSContextError(.keyMismatch, path: shown.key)
        }
        // The context keeps the certificate alive during the read.
        let certificate = SSL_CTX_get0_certificate(context)
        guard let end = secondsOfUnixTime(X509_get0_notAfter(certificate)) else {
            throw TLSContextError(.certificateUnreadable, path: shown.chain)
        }
        let own = dnsNames(of: certificate)
        return TLSCertificate(
            file: shown.chain,
            ownNames: own,
            names: shown.names.isEmpty ? own : shown.names,
            expiry: end,
            signsByRSA: signsByRSA(certificate),
            demandsStaple: copenssl_demands_staple(certificate) == 1
        )
    }

    /// ECDSA's suites of TLS 1.2 take EdDSA's keys, too (RFC 8422 §5.1.1).
    private static func signsByRSA(_ certificate: OpaquePointer?) -> Bool {
        let kind = EVP_PKEY_get_base_id(X509_get0_pubkey(certificate))
        return kind == EVP_PKEY_RSA || kind == EVP_PKEY_RSA_PSS
    }

    private static func dnsNames(of certificate: OpaquePointer?) -> [String] {
        guard let names = copenssl_subject_names(certificate) else { return [] }
        defer { GENERAL_NAMES_free(names) }
        return (0..<copenssl_names_count(names)).compactMap { index in
            var length: Int32 = 0
            guard let bytes = copenssl_dns_name(names, index, &length) else { return nil }
            // The names have `length` bytes there until they are freed.
            let text = UnsafeBufferPointer(start: bytes, count: Int(length))
            return String(validating: text, as: UTF8.self)
        }
    }

    static func secondsOfUnixTime(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        var days: Int32 = 0
        var seconds: Int32 = 0
        guard let epoch = ASN1_TIME_set(nil, 0) else { return nil }
        defer { ASN1_TIME_free(epoch) }
        guard ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
        return Int64(days) * 86400 + Int64(seconds)
    }

    private static func configureServer(_ context: OpaquePointer) {
        _ = copenssl_ssl_ctx_set_options(
            context,
            copenssl_SSL_OP_CIPHER_SERVER_PREFERENCE | copenssl_SSL_OP_PRIORITIZE_CHACHA
        )
        // One ticket per handshake is enough for a client that keeps its connection.
        SSL_CTX_set_num_tickets(context, 1)
        TicketKeys.install(in: context)
        SSL_CTX_set_session_id_context(context, sessionContext, UInt32(sessionContext.count))
        SSL_CTX_set_alpn_select_cb(context, selectProtocol, nil)
    }

    /// Shows the certificate for the name that the client asks for. A name without a certificate
    /// gets the first one (RFC 6066 §3 allows that).
    private static let chooseCertificate:
        @convention(c) (OpaquePointer?, UnsafeMutablePointer<Int32>?, UnsafeMutableRawPointer?) ->
            Int32 = { ssl, _, _ in
                guard let context = TLSSession.of(ssl)?.context,
                    let name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name),
                    let place = context.names.certificate(for: String(cString: name)), place > 0
                else { return SSL_TLSEXT_ERR_OK }
                // The ticket keys are still those of the first context, which are the same.
                guard SSL_set_SSL_CTX(ssl, context.others[place - 1].context) != nil else {
                    return SSL_TLSEXT_ERR_ALERT_FATAL
                }
                return SSL_TLSEXT_ERR_OK
            }

    /// RFC 7301 §3.2: a client that offers protocols, but none of ours, gets
    /// no_application_protocol.
    private static let selectProtocol: SSL_CTX_alpn_select_cb_func = {
        ssl,
        selected,
        selectedLength,
        offered,
        offeredLength,
        _ in
        guard let protocols = TLSSession.of(ssl)?.context.protocols else {
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
        // OpenSSL guarantees `offeredLength` bytes at `offered`, and keeps them while it reads the
        // answer, which points into them.
        let list = UnsafeBufferPointer(start: offered, count: Int(offeredLength))
        for name in protocols {
            var start = 0
            while start < list.count {
                let end = start + 1 + Int(list[start])
                guard end <= list.count else { break }
                if list[(start + 1)..<end].elementsEqual(name.utf8) {
                    selected?.pointee = offered.map { $0 + start + 1 }
                    selectedLength?.pointee = list[start]
                    return SSL_TLSEXT_ERR_OK
                }
                start = end
            }
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL
    }
}

// The client's side.
extension TLSContext {
    private static func load(_ trust: Trust, into context: OpaquePointer) throws(TLSContextError) {
        switch trust {
        case .anyone: break
        case .system:
            guard SSL_CTX_set_default_verify_paths(context) == 1 else {
                throw TLSContextError(.trustUnreadable)
            }
        case .file(let path):
            guard SSL_CTX_load_verify_file(context, path) == 1 else {
                throw TLSContextError(.trustUnreadable, path: path)
            }
            // The operator chose these certificates: each of them ends the chain, not only roots.
            X509_VERIFY_PARAM_set_flags(
                SSL_CTX_get0_param(context),
                UInt(X509_V_FLAG_PARTIAL_CHAIN)
            )
        }
    }

    private static func configureClient(_ context: OpaquePointer, _ protocols: [String]) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        // RFC 7301 §3.1: each name has its length in front. Unlike the other functions here, this
        // one returns 0 for success.
        let list = protocols.flatMap { [UInt8(clamping: $0.utf8.count)] + Array($0.utf8) }
        _ = SSL_CTX_set_alpn_protos(context, list, UInt32(list.count))
        TLSResumption.install(in: context)
    }
}

/// The most memory of a TLS session, whatever its peer does.
package enum TLSLimits {
    /// The most bytes of ciphertext that were fed and not read yet. 1 MiB is many times what an
    /// event loop reads at once. So only a driver that feeds and never reads reaches it.
    package static let unreadCiphertextMax = 1 << 20

    /// The most bytes of ciphertext that were produced and not taken yet. 4 MiB; a write beyond it
    /// is not accepted before a take.
    package static let untakenCiphertextMax = 4 << 20

    /// The most plain bytes that are kept until the handshake has ended. 256 KiB: a request head
    /// and the first pieces of its body.
    package static let earlyPlaintextMax = 256 << 10

    /// The most bytes that a peer may send in a handshake. 512 KiB: OpenSSL allows a certificate
    /// chain of 100 KiB and a ClientHello of 128 KiB.
    package static let handshakeInputMax = 512 << 10

    /// The most bytes of answers that a peer can cause without sending content, by key updates (RFC
    /// 8446 §4.6.3) or attempts to renegotiate. 16 KiB: some hundred answers.
    package static let answersMax = 16 << 10

    /// The most records under one key. 2^23: RFC 8446 §5.5 allows 2^24.5 with AES-GCM.
    package static let recordsPerKeyMax = 1 << 23
}
