import Glibc

// Reading what stays in the kernel.
extension Connection {
    /// Looks at the first bytes that have come, so many at most, and leaves them to be read.
    /// ``inputReady()`` follows when more have come. For a plain connection.
    package final func peek(_ max: Int) -> ReadOutcome {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: lane.input.prefix(max))
        var count = -1
        repeat {
            count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_PEEK))
        } while count < 0 && errno == EINTR
        socketIsReadable = false
        guard count > 0 else {
            if count == 0 { return .ended }
            return errno == EAGAIN ? .wouldBlock : .failed(.socket(SocketError("recv")))
        }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        return .octets(bytes.assumingMemoryBound(to: UInt8.self))
    }

    /// Reads away so many bytes that ``peek(_:)`` has shown.
    package final func skip(_ byteCount: Int) {
        // They are there, so that one call takes them all.
        let buffer = lane.input.prefix(byteCount)
        while recv(descriptor, buffer.base.baseAddress, buffer.count, 0) < 0, errno == EINTR {}
    }
}
