internal import COpenSSL

/// The two byte streams between OpenSSL and the driver of a session.
///
/// It replaces OpenSSL's memory BIO, which keeps its largest buffer for the life of the connection
/// and copies once more. Here an idle connection holds no buffer at all.
final class CiphertextPipe {
    /// Earlier bytes of the peer that OpenSSL has not read yet, from `keptStart` on.
    private var kept: [UInt8] = []
    private var keptStart = 0
    /// Current bytes of the peer, in the caller's memory. Set only during ``lending(_:_:)``.
    private var lent = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Bytes that OpenSSL wants to send.
    private(set) var output: [UInt8] = []
    /// The number of bytes that OpenSSL has written in total.
    private(set) var writtenCount = 0

    /// The number of bytes that OpenSSL can read.
    var unreadCount: Int { kept.count - keptStart + lent.count }

    /// Appends bytes of the peer.
    func keep(_ bytes: Span<UInt8>) {
        // The pointer lives for the call, and the copy is made inside it.
        bytes.withUnsafeBufferPointer { kept.append(contentsOf: $0) }
    }

    /// Lets OpenSSL read from the caller's memory while `body` runs; the rest is then copied.
    func lending<Result>(_ bytes: Span<UInt8>, _ body: () -> Result) -> Result {
        // The pointer is removed before the closure in which it is valid returns.
        bytes.withUnsafeBytes { lent in
            self.lent = lent
            defer {
                kept.append(contentsOf: self.lent)
                self.lent = UnsafeRawBufferPointer(start: nil, count: 0)
            }
            return body()
        }
    }

    /// Makes room for the ciphertext of a write of this size.
    func reserve(plaintext count: Int) {
        // A record carries at most 2^14 bytes and adds 29 (TLS 1.2, AES-GCM) or less.
        output.reserveCapacity(output.count + count + (count / 16384 + 1) * 32)
    }

    /// Moves the bytes to send after those in `destination`; without a copy when that is empty.
    func take(into destination: inout [UInt8]) {
        if destination.isEmpty {
            destination = output
        } else {
            destination.append(contentsOf: output)
        }
        output = []
    }

    /// Hands bytes to OpenSSL.
    ///
    /// - Returns: the number of bytes; 0 when there are none.
    fileprivate func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var count = 0
        if keptStart < kept.count {
            count = min(buffer.count, kept.count - keptStart)
            kept.withUnsafeBytes { kept in
                let piece = kept[keptStart..<keptStart + count]
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: piece))
            }
            keptStart += count
            if keptStart == kept.count {
                kept = []
                keptStart = 0
            }
        }
        guard count < buffer.count, !lent.isEmpty else { return count }
        let more = min(buffer.count - count, lent.count)
        let place = UnsafeMutableRawBufferPointer(rebasing: buffer[count..<count + more])
        place.copyMemory(from: UnsafeRawBufferPointer(rebasing: lent[..<more]))
        lent = UnsafeRawBufferPointer(rebasing: lent[more...])
        return count + more
    }

    fileprivate func write(_ bytes: UnsafeRawBufferPointer) {
        output.append(contentsOf: bytes)
        writtenCount += bytes.count
    }
}

// The BIO functions that OpenSSL calls.
extension CiphertextPipe {
    /// A BIO method that reads from and writes to a pipe; the caller frees it after its last BIO.
    static func makeMethod() -> OpaquePointer? {
        let kind = BIO_get_new_index() | Int32(BIO_TYPE_SOURCE_SINK)
        guard let method = BIO_meth_new(kind, "portcullis") else { return nil }
        BIO_meth_set_read_ex(method) { bio, buffer, capacity, count in
            guard let pipe = CiphertextPipe.of(bio), let buffer, let count else { return 0 }
            copenssl_bio_clear_retry_flags(bio)
            // OpenSSL guarantees `capacity` bytes at `buffer` during this call.
            let target = UnsafeMutableRawBufferPointer(start: buffer, count: capacity)
            count.pointee = pipe.read(into: target)
            guard count.pointee == 0 else { return 1 }
            copenssl_bio_set_retry_read(bio)
            return 0
        }
        BIO_meth_set_write_ex(method) { bio, bytes, length, count in
            guard let pipe = CiphertextPipe.of(bio), let bytes, let count else { return 0 }
            copenssl_bio_clear_retry_flags(bio)
            // As above, for `length` bytes.
            pipe.write(UnsafeRawBufferPointer(start: bytes, count: length))
            count.pointee = length
            return 1
        }
        BIO_meth_set_ctrl(method) { _, command, _, _ in
            // A flush has no work to do, and other commands are meaningless here.
            command == BIO_CTRL_FLUSH ? 1 : 0
        }
        return method
    }

    /// A BIO on this pipe. The pipe must outlive it.
    func makeBIO(_ method: OpaquePointer) -> OpaquePointer? {
        guard let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    /// The pipe of a BIO made by ``makeBIO(_:)``. OpenSSL calls the BIO only from calls that the
    /// session makes, and the session owns the pipe and frees the BIO first.
    private static func of(_ bio: OpaquePointer?) -> CiphertextPipe? {
        guard let data = BIO_get_data(bio) else { return nil }
        return Unmanaged<CiphertextPipe>.fromOpaque(data).takeUnretainedValue()
    }
}
