internal import COpenSSL
import Glibc

/// The facts of a list of revoked certificates (RFC 5280 §5).
package struct RevocationList: Hashable, Sendable {
    /// The file, as the operator named it or as the folder has it.
    package let file: String
    /// The authority, in the form of RFC 4514.
    package let issuer: String
    /// When the list was made (thisUpdate), in seconds of Unix time.
    package let start: Int64
    /// When the next one is due (nextUpdate), in seconds of Unix time. From then on OpenSSL accepts
    /// no certificate of the authority.
    package let end: Int64
}

/// The files of revoked certificates that an operator names by one path.
package enum RevocationFiles {
    /// The most files of a folder.
    package static let filesMax = 256
    /// The most bytes of a file. 64 MiB: more than a million revoked certificates.
    package static let fileBytesMax = 64 << 20

    /// The file itself, or the files of a folder in lexical order, without those whose names begin
    /// with a dot.
    ///
    /// - Returns: at most `filesMax` and one more; `nil` when the folder can't be read.
    package static func paths(at path: String) -> [String]? {
        var facts = stat()
        guard stat(path, &facts) == 0, facts.st_mode & S_IFMT == S_IFDIR else { return [path] }
        guard let folder = opendir(path) else { return nil }
        defer { closedir(folder) }
        var names: [String] = []
        while names.count <= filesMax, let entry = readdir(folder) {
            // The entry is valid until the next call, and its name ends with a byte 0.
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted().map { "\(path)/\($0)" }
    }
}

/// Lists of revoked certificates, for the contexts of a listener.
final class RevocationLists {
    /// One for each authority.
    private(set) var facts: [RevocationList] = []
    /// The digests of the lists, one after the other.
    private(set) var digests: [UInt8] = []
    /// Each an `X509_CRL`, owned.
    private var pointers: [OpaquePointer] = []

    /// Reads a file with lists, in PEM or one in DER, or all files of a folder.
    ///
    /// - Throws: the first problem. A list that can't be used is never left out: certificates that
    ///   it revokes would pass.
    init(reading path: String) throws(TLSContextError) {
        guard let files = RevocationFiles.paths(at: path), !files.isEmpty else {
            throw Self.fault(path, "a folder without a file, or that can't be read")
        }
        guard files.count <= RevocationFiles.filesMax else {
            throw Self.fault(path, "more than \(RevocationFiles.filesMax) files in the folder")
        }
        for file in files {
            try read(file)
        }
    }

    deinit { for pointer in pointers { X509_CRL_free(pointer) } }

    private func read(_ file: String) throws(TLSContextError) {
        var status = stat()
        guard stat(file, &status) == 0 else { throw Self.fault(file, WholeFile.lastError) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= RevocationFiles.fileBytesMax
        else { throw Self.fault(file, "no regular file, or more than 64 MiB") }
        ERR_clear_error()
        defer { ERR_clear_error() }
        let count = pointers.count
        try Self.with(file) { source throws(TLSContextError) in
            while let list = PEM_read_bio_X509_CRL(source, nil, nil, nil) { pointers.append(list) }
            // After the last one there is no other beginning. Anything else is a list that is cut.
            let code = ERR_peek_last_error()
            guard ERR_GET_LIB(code) == ERR_LIB_PEM, ERR_GET_REASON(code) == PEM_R_NO_START_LINE
            else { throw Self.fault(file, "a list that is cut or malformed") }
        }
        if pointers.count == count {
            try Self.with(file) { source throws(TLSContextError) in
                guard let list = d2i_X509_CRL_bio(source, nil) else {
                    throw Self.fault(file, "no list of revoked certificates")
                }
                pointers.append(list)
            }
        }
        for list in pointers[count...] { try examine(list, of: file) }
    }

    private static func with(
        _ file: String,
        _ read: (OpaquePointer) throws(TLSContextError) -> Void
    ) throws(TLSContextError) {
        guard let source = BIO_new_file(file, "rb") else { throw fault(file, "it can't be read") }
        defer { BIO_free(source) }
        try read(source)
    }

    private static func fault(_ file: String, _ detail: String) -> TLSContextError {
        TLSContextError(.listUnreadable, path: file, detail: detail)
    }

    /// Notes the facts of a list: of several of an authority, the one that ends last.
    private func examine(_ list: OpaquePointer, of file: String) throws(TLSContextError) {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 32
        guard X509_CRL_digest(list, EVP_sha256(), &digest, &length) == 1, length == 32 else {
            throw TLSContextError(.library)
        }
        let issuer = TLSSession.text(of: X509_CRL_get_issuer(list))
        let name = String(decoding: issuer, as: UTF8.self)
        // RFC 5280 §5.1.2.5: it has to be there. Without it a list would be good for ever.
        guard let start = TLSContext.secondsOfUnixTime(X509_CRL_get0_lastUpdate(list)),
            let next = X509_CRL_get0_nextUpdate(list),
            let end = TLSContext.secondsOfUnixTime(next)
        else { throw Self.fault(file, "the list of \(name) does not say when it ends") }
        // OpenSSL looks at such lists only beside a whole one, and not without a flag.
        guard X509_CRL_get_ext_by_NID(list, NID_delta_crl, -1) < 0 else {
            throw Self.fault(file, "the list of \(name) has changes alone (a delta CRL)")
        }
        digests += digest
        let one = RevocationList(file: file, issuer: name, start: start, end: end)
        let known = facts.firstIndex { $0.issuer == name }
        guard let known else { return facts.append(one) }
        if facts[known].end < end { facts[known] = one }
    }

    /// Makes a context refuse revoked certificates of clients.
    ///
    /// The whole chain is checked, as nginx does: each authority on the way needs a list. One that
    /// is absent, or whose time is over, refuses all certificates of its authority
    /// (X509_V_FLAG_CRL_CHECK_ALL in X509_VERIFY_PARAM_set_flags(3)).
    func install(in context: OpaquePointer) throws(TLSContextError) {
        let store = SSL_CTX_get_cert_store(context)
        for list in pointers where X509_STORE_add_crl(store, list) != 1 {
            throw TLSContextError(.library)
        }
        X509_VERIFY_PARAM_set_flags(
            SSL_CTX_get0_param(context),
            UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL)
        )
    }

    /// Checks an authority that is trusted: it has to have made one of the lists, and to lead to a
    /// root among those that are trusted.
    ///
    /// - Returns: what is wrong; `nil` when nothing is.
    func fault(of authority: OpaquePointer, among all: [OpaquePointer]) -> String? {
        defer { ERR_clear_error() }
        let subject = X509_get_subject_name(authority)
        let name = String(decoding: TLSSession.text(of: subject), as: UTF8.self)
        let own = pointers.filter { X509_NAME_cmp(X509_CRL_get_issuer($0), subject) == 0 }
        guard !own.isEmpty else {
            return "no list of \(name), so that every client of it is refused"
        }
        let key = X509_get0_pubkey(authority)
        guard own.allSatisfy({ X509_CRL_verify($0, key) == 1 }) else {
            return "a list of \(name) that its key has not signed"
        }
        guard all.contains(where: { X509_check_issued($0, authority) == Int32(X509_V_OK) }) else {
            return "no certificate in ca that has issued \(name), up to which lists are checked"
        }
        return nil
    }
}
