internal import COpenSSL

extension X509Certificate {
    /// The most certificates that are looked at while a path is built.
    package static let pathCandidatesMax = 16

    /// The path from this certificate to one of the anchors, all of it valid at `time`: this
    /// certificate first, the anchor last.
    ///
    /// Exactly the given anchors are trusted, and they have to be self-signed: the system's store
    /// is not asked. No purpose and no name is asked for: App Attest's certificates carry none that
    /// OpenSSL knows. Issuers have to be authorities (basicConstraints, keyUsage), and critical
    /// extensions that OpenSSL does not know make a path bad.
    ///
    /// Throws `.untrusted`, then `.notYetValid` or `.expired` for the certificate nearest to the
    /// anchor that is. Validity is judged here, to the second and inclusive of both ends as RFC
    /// 5280 §4.1.2.5 says; OpenSSL refuses the last second.
    package func path(
        through intermediates: [X509Certificate],
        to anchors: [X509Certificate],
        at time: UnixTime
    ) throws(X509CertificateError) -> [X509Certificate] {
        guard intermediates.count <= Self.pathCandidatesMax, anchors.count <= Self.pathCandidatesMax
        else { throw X509CertificateError(.untrusted, "too many certificates") }
        let path = try pathIgnoringTime(through: intermediates, to: anchors)
        for certificate in path.reversed() {
            guard certificate.notBefore.seconds <= time.seconds else {
                throw X509CertificateError(
                    .notYetValid,
                    "valid from \(certificate.notBefore.iso8601), judged at \(time.iso8601)"
                )
            }
            guard time.seconds <= certificate.notAfter.seconds else {
                throw X509CertificateError(
                    .expired,
                    "valid to \(certificate.notAfter.iso8601), judged at \(time.iso8601)"
                )
            }
        }
        return path
    }

    private func pathIgnoringTime(
        through intermediates: [X509Certificate],
        to anchors: [X509Certificate]
    ) throws(X509CertificateError) -> [X509Certificate] {
        guard let context = X509_STORE_CTX_new(), let trusted = Self.stack(of: anchors),
            let untrusted = Self.stack(of: intermediates)
        else { preconditionFailure("X509Certificate: no memory") }
        defer {
            // The stacks hold no references: the arrays keep the certificates alive until here.
            copenssl_x509_stack_free(trusted)
            copenssl_x509_stack_free(untrusted)
            X509_STORE_CTX_free(context)
            ERR_clear_error()
        }
        guard X509_STORE_CTX_init(context, nil, pointer, untrusted) == 1 else {
            preconditionFailure("X509Certificate: no memory")
        }
        X509_STORE_CTX_set0_trusted_stack(context, trusted)
        X509_STORE_CTX_set_flags(context, UInt(X509_V_FLAG_NO_CHECK_TIME))
        guard X509_verify_cert(context) == 1 else {
            let code = X509_STORE_CTX_get_error(context)
            let text = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) }
            throw X509CertificateError(.untrusted, text ?? "code \(code)")
        }
        guard let chain = X509_STORE_CTX_get0_chain(context) else {
            throw X509CertificateError(.untrusted, "no path")
        }
        var path: [X509Certificate] = []
        for index in 0..<copenssl_x509_stack_count(chain) {
            guard let pointer = copenssl_x509_stack_get(chain, index), X509_up_ref(pointer) == 1
            else { throw X509CertificateError(.untrusted, "no path") }
            path.append(try X509Certificate(owning: pointer))
        }
        return path
    }

    private static func stack(of certificates: [X509Certificate]) -> OpaquePointer? {
        guard let stack = copenssl_x509_stack_new() else { return nil }
        for certificate in certificates {
            guard copenssl_x509_stack_push(stack, certificate.pointer) > 0 else {
                copenssl_x509_stack_free(stack)
                return nil
            }
        }
        return stack
    }
}
