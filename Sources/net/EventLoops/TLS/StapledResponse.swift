internal import COpenSSL

/// The authority's statement that a certificate is not revoked (an OCSP response, RFC 6960). It is
/// sent in the handshake to clients that ask (RFC 6066 §8), so that they need not ask the
/// authority.
package struct StapledResponse: Hashable, Sendable {
    /// The most bytes of a response. Real ones have about 500, or 2,000 with a responder's
    /// certificate.
    package static let byteCountMax = 65_536
    /// How late the clock may be compared with the responder's.
    private static let clockSkewSeconds: Int64 = 300

    /// The response in DER.
    let bytes: [UInt8]
    /// `thisUpdate`, in seconds of Unix time.
    package let validFrom: Int64
    /// `nextUpdate`: it is not sent from this second on.
    package let validUntil: Int64

    /// Verifies a response for the certificate of a context.
    ///
    /// - Throws: the first problem, in the order of ``StapleProblem``.
    private init(_ bytes: [UInt8], for context: OpaquePointer, now: Int64) throws(StapleProblem) {
        guard bytes.count <= Self.byteCountMax else { throw .tooLong }
        guard let response = Self.parsed(bytes) else { throw .malformed }
        defer { OCSP_RESPONSE_free(response) }
        guard OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL else {
            throw .unsuccessful
        }
        guard let basic = OCSP_response_get1_basic(response) else { throw .malformed }
        defer { OCSP_BASICRESP_free(basic) }
        // The context keeps its certificates alive.
        let certificate = SSL_CTX_get0_certificate(context)
        guard let issuer = Self.issuer(of: certificate, in: context) else { throw .issuerMissing }
        guard let said = Self.said(by: basic, of: certificate, issuer) else {
            throw .otherCertificate
        }
        guard Self.isSigned(basic, by: issuer) else { throw .untrusted }
        switch said.status {
        case V_OCSP_CERTSTATUS_GOOD: break
        case V_OCSP_CERTSTATUS_REVOKED: throw .revoked
        default: throw .unknown
        }
        guard let validFrom = TLSContext.secondsOfUnixTime(said.from) else { throw .malformed }
        guard said.until != nil else { throw .endless }
        guard let validUntil = TLSContext.secondsOfUnixTime(said.until) else { throw .malformed }
        self.bytes = bytes
        self.validFrom = validFrom
        self.validUntil = validUntil
        guard validFrom <= now + Self.clockSkewSeconds else { throw .early }
        guard isCurrent(at: now) else { throw .expired }
    }

    /// Whether it may be sent; `now` in seconds of Unix time.
    package func isCurrent(at now: Int64) -> Bool { now < validUntil }
}

// Loading.
extension StapledResponse {
    /// Reads the response file of a certificate.
    ///
    /// - context: already has the certificate and its chain.
    /// - Returns: the stapled response, and why the file's response is not stapled.
    static func load(
        _ shown: ServerCertificate,
        for context: OpaquePointer,
        now: Int64
    ) -> (StapledResponse?, StapleProblem?) {
        guard let file = shown.ocsp else { return (nil, nil) }
        defer { ERR_clear_error() }
        do throws(StapleProblem) {
            return (try StapledResponse(bytes(of: file), for: context, now: now), nil)
        } catch {
            // The authority has withdrawn the previous response.
            guard error != .revoked else { return (nil, error) }
            // The certificate may have changed meanwhile, so the previous response is checked too.
            let previous = shown.previousStaple.flatMap { previous in
                try? StapledResponse(previous.bytes, for: context, now: now)
            }
            return (previous, error)
        }
    }

    private static func bytes(of file: String) throws(StapleProblem) -> [UInt8] {
        guard let source = BIO_new_file(file, "rb") else { throw .unreadable }
        defer { BIO_free(source) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        while bytes.count <= byteCountMax {
            let count = Int(BIO_read(source, &piece, Int32(piece.count)))
            guard count >= 0 else { throw .unreadable }
            if count == 0 { break }
            bytes += piece.prefix(count)
        }
        return bytes
    }

    private static func parsed(_ bytes: [UInt8]) -> OpaquePointer? {
        bytes.withUnsafeBufferPointer { buffer in
            var place = buffer.baseAddress
            guard let response = d2i_OCSP_RESPONSE(nil, &place, buffer.count) else { return nil }
            // OpenSSL has moved `place` past the bytes that it has read, within the buffer.
            guard place == buffer.baseAddress.map({ $0 + buffer.count }) else {
                OCSP_RESPONSE_free(response)
                return nil
            }
            return response
        }
    }

    /// The issuer, from the chain or the certificate itself.
    private static func issuer(
        of certificate: OpaquePointer?,
        in context: OpaquePointer
    ) -> OpaquePointer? {
        let chain = copenssl_ssl_ctx_chain(context)
        let others = (0..<copenssl_x509_stack_count(chain)).map {
            copenssl_x509_stack_get(chain, $0)
        }
        return ([certificate] + others).first { X509_check_issued($0, certificate) == X509_V_OK }
            ?? nil
    }

    /// The statement of a response about a certificate. The times belong to the response.
    private struct Said {
        var status: Int32 = -1
        var from: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
        var until: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
    }

    private static func said(
        by basic: OpaquePointer,
        of certificate: OpaquePointer?,
        _ issuer: OpaquePointer
    ) -> Said? {
        // A responder names the certificate by hashes of its own choice (RFC 6960 §4.1.1).
        for digest in [EVP_sha1(), EVP_sha256(), EVP_sha384(), EVP_sha512()] {
            guard let name = OCSP_cert_to_id(digest, certificate, issuer) else { continue }
            defer { OCSP_CERTID_free(name) }
            var said = Said()
            let isFound = OCSP_resp_find_status(
                basic,
                name,
                &said.status,
                nil,
                nil,
                &said.from,
                &said.until
            )
            if isFound == 1 { return said }
        }
        return nil
    }

    /// Whether the issuer has signed it, or a responder with the issuer's certificate for that (RFC
    /// 6960 §4.2.2.2).
    private static func isSigned(_ basic: OpaquePointer, by issuer: OpaquePointer) -> Bool {
        guard let store = X509_STORE_new() else { return false }
        defer { X509_STORE_free(store) }
        guard let known = copenssl_x509_stack_new() else { return false }
        // The stack has no reference of its own; the context keeps the issuer alive.
        defer { copenssl_x509_stack_free(known) }
        // The issuer is trusted by itself: it need not be a root.
        guard X509_STORE_add_cert(store, issuer) == 1,
            X509_STORE_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN)) == 1,
            copenssl_x509_stack_push(known, issuer) > 0
        else { return false }
        return OCSP_basic_verify(basic, known, store, 0) == 1
    }
}

// Sending.
extension StapledResponse {
    /// Makes the sessions of a context send its response.
    ///
    /// Each certificate's context has the callback, since OpenSSL calls that of the context in use
    /// after the certificate is chosen.
    static func install(in context: OpaquePointer) {
        _ = copenssl_ssl_ctx_set_status_callback(context) { ssl, _ in
            guard let context = TLSSession.of(ssl)?.context, let own = SSL_get_SSL_CTX(ssl),
                let staple = context.staples[own], staple.isCurrent(at: context.wallSeconds())
            else { return SSL_TLSEXT_ERR_NOACK }
            let isTaken = staple.bytes.withUnsafeBufferPointer {
                copenssl_ssl_staple(ssl, $0.baseAddress, $0.count) == 1
            }
            // A client that requires a response ends the handshake without one; others continue.
            return isTaken ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK
        }
    }
}

/// Why an OCSP response is not stapled.
package enum StapleProblem: String, Error, CaseIterable, Sendable {
    /// The file is missing or can't be read.
    case unreadable
    /// It is longer than ``StapledResponse/byteCountMax``.
    case tooLong = "too-long"
    /// It is no OCSP response in DER, or bytes follow it.
    case malformed
    /// The responder says that it has failed (RFC 6960 §4.2.1, OCSPResponseStatus).
    case unsuccessful
    /// The certificate's file does not have the issuer's certificate.
    case issuerMissing = "issuer-missing"
    /// It is about other certificates.
    case otherCertificate = "other-certificate"
    /// Neither the issuer nor a responder that the issuer names has signed it.
    case untrusted
    /// The certificate is revoked.
    case revoked
    /// The issuer does not know the certificate.
    case unknown
    /// It has no `nextUpdate`, so its end is unknown.
    case endless
    /// Its `thisUpdate` is in the future.
    case early
    /// Its `nextUpdate` has passed.
    case expired

    /// The finding, as a noun.
    package var found: String {
        switch self {
        case .unreadable: "a file that can't be read"
        case .tooLong: "a file longer than \(StapledResponse.byteCountMax) bytes"
        case .malformed: "a file that is no OCSP response in DER"
        case .unsuccessful: "a response by which the authority's server says that it has failed"
        case .issuerMissing: "a certificate whose issuer is not in its file"
        case .otherCertificate: "a response for another certificate"
        case .untrusted: "a response that the certificate's issuer has not signed"
        case .revoked: "a response that says that the certificate is revoked"
        case .unknown: "a response that says that the issuer does not know the certificate"
        case .endless: "a response without nextUpdate"
        case .early: "a response that is not valid yet"
        case .expired: "a response that has ended"
        }
    }

    /// The operator's next step.
    package var use: String {
        switch self {
        case .issuerMissing: "the issuer's certificate behind the server's in the certificate file"
        case .revoked: "a new certificate"
        case .early: "this machine's clock set right, or another response"
        case .unreadable, .tooLong, .malformed, .unsuccessful, .otherCertificate, .untrusted,
            .unknown, .endless, .expired:
            "a fresh response: openssl ocsp -issuer CHAIN -cert CERTIFICATE -url URL -respout FILE"
        }
    }
}
