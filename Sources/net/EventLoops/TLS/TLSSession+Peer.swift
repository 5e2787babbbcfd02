internal import COpenSSL

/// A verified certificate of the peer.
package struct TLSPeerCertificate: Hashable, Sendable {
    /// SHA-256 of the whole certificate.
    package let fingerprint: [UInt8]
    /// The subject in the form of RFC 4514, in ASCII.
    package let subject: [UInt8]
}

/// The certificates that a listener asks its clients for.
package struct ClientTrust: Hashable, Sendable {
    package enum Demand: Hashable, Sendable {
        /// A client without a certificate is served. One with a wrong certificate is not.
        case optional
        case required
    }

    /// Path of a PEM file: the authorities that sign clients' certificates.
    package let authorities: String
    /// Path of a file or folder with lists of revoked certificates; `nil` where none is checked.
    package let revoked: String?
    package let demand: Demand

    package init(authorities: String, revoked: String? = nil, demand: Demand) {
        self.authorities = authorities
        self.revoked = revoked
        self.demand = demand
    }

    /// Makes a listener's context ask for certificates.
    ///
    /// A resumed session has a certificate of which only the end is checked again. So the session
    /// context depends on the demand: sessions of other authorities, and of listeners that ask for
    /// less, are not resumed.
    /// New lists end sessions, too: a client that was revoked since would resume one.
    func install(in context: OpaquePointer, _ lists: RevocationLists?) throws(TLSContextError) {
        guard SSL_CTX_load_verify_file(context, authorities) == 1,
            let digest = try digest(lists),
            let names = SSL_load_client_CA_file(authorities)
        else { throw TLSContextError(.trustUnreadable, path: authorities) }
        // The context takes over the names.
        SSL_CTX_set_client_CA_list(context, names)
        if let lists {
            try lists.install(in: context)
        } else {
            // The operator chose these certificates: each of them ends the chain, not only roots.
            // Lists are checked up to a root: OpenSSL asks for one of each certificate's issuer.
            X509_VERIFY_PARAM_set_flags(
                SSL_CTX_get0_param(context),
                UInt(X509_V_FLAG_PARTIAL_CHAIN)
            )
        }
        let failing = demand == .required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | failing, nil)
        SSL_CTX_set_session_id_context(context, digest, UInt32(digest.count))
        SSL_CTX_set_session_ticket_cb(context, nil, Self.judgeTicket, nil)
    }

    /// A session whose certificate has ended is not resumed, so that the client shows a certificate
    /// again; nor is any where a list of revoked certificates has ended. In TLS 1.3 each resumption
    /// gives a new ticket: the ticket's own end ends nothing.
    private static let judgeTicket: SSL_CTX_decrypt_session_ticket_fn = {
        ssl,
        session,
        _,
        _,
        status,
        _ in
        guard status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW else {
            return SSL_TICKET_RETURN_IGNORE_RENEW
        }
        let context = TLSSession.of(ssl)?.context
        let now = context?.wallSeconds() ?? TLSContext.systemSeconds()
        if let end = context?.revocationEnd, end <= now { return SSL_TICKET_RETURN_IGNORE_RENEW }
        // The session keeps its certificate alive during the call.
        if let certificate = SSL_SESSION_get0_peer(session),
            let end = TLSContext.secondsOfUnixTime(X509_get0_notAfter(certificate)), end <= now
        {
            return SSL_TICKET_RETURN_IGNORE_RENEW
        }
        return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW
    }

    /// The digest of the certificates, the lists and the demand: 32 bytes, the most that a session
    /// context may have. `nil` when the file can't be read.
    private func digest(_ lists: RevocationLists?) throws(TLSContextError) -> [UInt8]? {
        guard let file = BIO_new_file(authorities, "r") else { return nil }
        defer { BIO_free(file) }
        var certificates: [OpaquePointer] = []
        defer { for certificate in certificates { X509_free(certificate) } }
        while let one = PEM_read_bio_X509(file, nil, nil, nil) { certificates.append(one) }
        ERR_clear_error()
        var all: [UInt8] = [demand == .required ? 1 : 0]
        for certificate in certificates {
            guard let one = TLSSession.fingerprint(of: certificate) else { return nil }
            all += one
            if let fault = lists?.fault(of: certificate, among: certificates) {
                throw TLSContextError(.listMissing, path: revoked ?? "", detail: fault)
            }
        }
        all += lists?.digests ?? []
        var digest = [UInt8](repeating: 0, count: 32)
        guard SHA256(all, all.count, &digest) != nil else { return nil }
        return digest
    }
}

extension TLSSession {
    package var asksClients: Bool { context.asksClients }

    /// The client's certificate, from this connection or from the one that it resumes; `nil` for
    /// none, and at a client's end.
    package var clientCertificate: TLSPeerCertificate? {
        guard asksClients, isEstablished,
            let certificate = copenssl_ssl_get1_peer_certificate(pointer)
        else { return nil }
        defer { X509_free(certificate) }
        guard SSL_get_verify_result(pointer) == Int(X509_V_OK),
            let fingerprint = Self.fingerprint(of: certificate)
        else { return nil }
        let subject = Self.text(of: X509_get_subject_name(certificate))
        return TLSPeerCertificate(fingerprint: fingerprint, subject: subject)
    }

    static func fingerprint(of certificate: OpaquePointer) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 32
        guard X509_digest(certificate, EVP_sha256(), &digest, &length) == 1, length == 32 else {
            return nil
        }
        return digest
    }

    /// A name in the form of RFC 4514, in ASCII.
    static func text(of name: OpaquePointer?) -> [UInt8] {
        guard let text = BIO_new(BIO_s_mem()) else { return [] }
        defer { BIO_free(text) }
        let flags = UInt(copenssl_XN_FLAG_RFC2253)
        guard X509_NAME_print_ex(text, name, 0, flags) >= 0 else {
            return []
        }
        var data: UnsafeMutablePointer<CChar>?
        let count = copenssl_bio_mem_data(text, &data)
        guard let data, count > 0 else { return [] }
        // The BIO has `count` bytes there until it is freed.
        return UnsafeBufferPointer(start: data, count: count).map { UInt8(bitPattern: $0) }
    }
}
