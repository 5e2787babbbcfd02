import Glibc

/// Messages for people.
enum StandardError {
    /// How long a start waits for its messages to be read: 2 s. The pipe may be full, and its
    /// reader stuck.
    static let startPatienceMillis: Int32 = 2_000
    /// A pipe that is ready takes so many bytes at once (pipe(7), PIPE_BUF).
    private static let pieceBytes = 4_096

    /// Writes a text and ends the line. Drops the rest when nothing is read for so many
    /// milliseconds; -1 waits for ever, as is usual for commands that people run.
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
