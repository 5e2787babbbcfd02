import Glibc

/// Messages for people.
enum StandardError {
    /// How long a start waits for somebody to read what it says: 2 s. Whoever starts a service may
    /// hold a full pipe.
    static let startPatienceMillis: Int32 = 2_000
    /// A pipe that is ready takes so many bytes at once (pipe(7), PIPE_BUF).
    private static let pieceBytes = 4_096

    /// Writes a text and ends the line. A reader that takes nothing is waited for so long before
    /// the rest is dropped; -1 for ever, as programs do that people run.
    static func write(_ text: String, patienceMillis: Int32 = -1) {
        let bytes = Array((text.hasSuffix("\n") ? text : text + "\n").utf8)
        var written = 0
        while written < bytes.count {
            var room = pollfd(fd: 2, events: Int16(POLLOUT), revents: 0)
            let ready = poll(&room, 1, patienceMillis)
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { return }
            let piece = bytes[written..<min(written + pieceBytes, bytes.count)]
            let count = piece.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
            // Nobody is left to tell when this fails.
            guard count > 0 || errno == EINTR || errno == EAGAIN else { return }
            written += max(count, 0)
        }
    }
}
