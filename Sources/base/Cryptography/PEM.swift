internal import COpenSSL

/// Text that OpenSSL writes into a memory BIO.
enum PEM {
    /// What `write` puts into the BIO, or the end of the process: writing to memory fails only
    /// without memory.
    static func text(_ write: (OpaquePointer) -> Bool) -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { preconditionFailure("PEM: no memory") }
        defer { BIO_free(bio) }
        guard write(bio) else { preconditionFailure("PEM: OpenSSL cannot write") }
        return String(decoding: octets(of: bio), as: UTF8.self)
    }

    /// A copy of what a memory BIO holds.
    static func octets(of bio: OpaquePointer) -> [UInt8] {
        var start: UnsafeMutablePointer<CChar>?
        let count = copenssl_bio_mem_data(bio, &start)
        guard let start, count > 0 else { return [] }
        // The BIO owns `count` bytes at `start` and is alive; they are copied.
        return Array(UnsafeRawBufferPointer(start: start, count: count))
    }
}
