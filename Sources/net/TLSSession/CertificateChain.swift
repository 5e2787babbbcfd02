internal import COpenSSL

/// What a PEM file shows to clients: a certificate, and those that lead to its root.
package enum CertificateChain {
    /// Why a client that trusts what this machine trusts would not find the root, in OpenSSL's
    /// words; `nil` when it does, or when the file has no certificate that can be read.
    ///
    /// An intermediate certificate that is missing shows nowhere else: browsers often have it from
    /// another site, and apps then refuse the connection.
    package static func fault(of path: String) -> String? {
        ERR_clear_error()
        guard let context = SSL_CTX_new(TLS_server_method()) else { return nil }
        defer {
            SSL_CTX_free(context)
            ERR_clear_error()
        }
        guard SSL_CTX_use_certificate_chain_file(context, path) == 1,
            SSL_CTX_set_default_verify_paths(context) == 1
        else { return nil }
        // SSL_CTX_build_cert_chain(3): the file's other certificates lead to the root, and are not
        // trusted themselves.
        let flags = Int(SSL_BUILD_CHAIN_FLAG_UNTRUSTED)
        guard SSL_CTX_ctrl(context, SSL_CTRL_BUILD_CERT_CHAIN, flags, nil) <= 0 else { return nil }
        var data: UnsafePointer<CChar>?
        var dataFlags: Int32 = 0
        _ = ERR_peek_last_error_data(&data, &dataFlags)
        let text = data.map { String(cString: $0) } ?? ""
        let mark = "Verify error:"
        return text.hasPrefix(mark) ? String(text.dropFirst(mark.count)) : "the chain is not whole"
    }
}
