import Cryptography
import Foundation
import Glibc

/// An origin that writes down what it sees, whole or not, and answers 200.
///
/// `@unchecked Sendable`: what changes is touched under `condition`.
final class RecordingOrigin: @unchecked Sendable {
    /// A request as it arrived.
    struct Seen {
        let method: String
        let target: String
        let head: MessageReader.Head
        /// Octets of content that came.
        let count: Int
        let digest: SHA256Digest
        /// Whether its end came.
        let isComplete: Bool
    }

    let port: UInt16
    private let listener: Int32
    private let condition = NSCondition()
    private var requests: [Seen] = []

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard listener >= 0 else { throw Socket.Failure("socket") }
        var address = Socket.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, size) == 0 && listen(listener, 512) == 0
                    && getsockname(listener, address, &size) == 0
            }
        }
        guard status else { throw Socket.Failure("listen") }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in accept() }
    }

    /// Ends accepting; connections end with those who made them.
    func end() { shutdown(listener, Int32(SHUT_RDWR)) }

    private func accept() {
        defer { close(listener) }
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else {
                if errno == EINTR { continue }
                return
            }
            // No program that is started later keeps the connection open.
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            Thread.detachNewThread { [self] in
                // Whoever closes early is of no concern here: what came was written down.
                try? serve(MessageReader(Socket(descriptor: descriptor)))
            }
        }
    }

    private func serve(_ reader: MessageReader) throws {
        while let head = try reader.head() {
            var count = 0
            var stream = SHA256.Stream()
            let isComplete: Bool
            do {
                isComplete = try reader.content(of: head, untilEnd: false) { piece in
                    count += piece.count
                    stream.update(Array(piece).span)
                }
            } catch {
                isComplete = false
            }
            let words = head.startLine.split(separator: " ").map(String.init)
            let seen = Seen(
                method: words[0],
                target: words.count > 1 ? words[1] : "",
                head: head,
                count: count,
                digest: stream.digest(),
                isComplete: isComplete
            )
            condition.withLock {
                requests.append(seen)
                condition.broadcast()
            }
            guard isComplete else { return }
            try reader.socket.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
        }
    }

    /// What was seen so far.
    var seen: [Seen] { condition.withLock { requests } }

    /// What was seen, once there is so much.
    func seen(_ count: Int) throws -> [Seen] {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        return try condition.withLock {
            while requests.count < count {
                guard condition.wait(until: deadline) else {
                    throw ChildProcess.Failure(
                        description: "the origin saw \(requests.count) requests, not \(count)"
                    )
                }
            }
            return requests
        }
    }
}
