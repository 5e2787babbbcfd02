import Glibc

/// What commands answer.
///
/// A reader may stop before the end, as in `portcullis check FILE | head`. That is no fault, and
/// nothing is said of it. A command whose status is its answer (check, test, verify) ends with that
/// status all the same; one that prints a list ends at once with 1, since the list is incomplete. A
/// full disk is reported.
enum StandardOutput {
    /// Writes a text.
    ///
    /// - Returns: whether all of it was taken.
    @discardableResult
    static func write(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        var written = 0
        while written < bytes.count {
            // The pointer lives for the call; the rest is not empty.
            let count = bytes.withUnsafeBytes {
                Glibc.write(1, $0.baseAddress.map { $0 + written }, $0.count - written)
            }
            if count > 0 {
                written += count
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                // Another process has made the pipe or terminal that it shares non-blocking.
                var room = pollfd(fd: 1, events: Int16(POLLOUT), revents: 0)
                _ = poll(&room, 1, -1)
            case EPIPE: return false
            default:
                let reason = String(cString: strerror(errno))
                StandardError.write("portcullis: standard output can't be written: \(reason)")
                return false
            }
        }
        return true
    }
}
