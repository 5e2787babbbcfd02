import Cryptography
import Foundation
import LoopbackKit

/// An origin that writes down what it sees, whole or not, and answers 200.
///
/// `@unchecked Sendable`: what changes is touched under `condition`; the listener is set once.
final class RecordingOrigin: @unchecked Sendable {
    /// A request as it arrived.
    struct Seen {
        /// The number of its connection, from zero.
        let connection: Int
        let method: String
        let target: String
        let head: MessageReader.Head
        /// Bytes of content that came.
        let count: Int
        let digest: SHA256Digest
        /// Whether its end came.
        let isComplete: Bool
        /// Whether a reset came in place of it.
        let wasReset: Bool
    }

    private let condition = NSCondition()
    private var requests: [Seen] = []
    private var accepted = 0
    private var begun = 0
    private var unanswered: Set<String> = []
    private var isPaused = false
    private let fields: String
    private var listener: LoopbackListener?

    /// - `fields`: lines for each answer.
    init(fields: String = "") throws {
        self.fields = fields
        listener = try LoopbackListener { [self] reader in try serve(reader) }
    }

    var port: UInt16 { listener?.port ?? 0 }

    /// Ends accepting; connections end with those who made them.
    func end() {
        resume()
        listener?.end()
    }

    private func serve(_ reader: MessageReader) throws {
        let connection = condition.withLock {
            accepted += 1
            return accepted - 1
        }
        while let head = try reader.head() {
            condition.withLock {
                begun += 1
                condition.broadcast()
                while isPaused { condition.wait() }
            }
            var count = 0
            var stream = SHA256.Stream()
            let isComplete: Bool
            var wasReset = false
            do {
                isComplete = try reader.content(of: head, untilEnd: false) { piece in
                    count += piece.count
                    stream.update(Array(piece).span)
                }
            } catch {
                isComplete = false
                wasReset = (error as? Socket.Failure)?.code == ECONNRESET
            }
            let words = head.startLine.split(separator: " ").map(String.init)
            let seen = Seen(
                connection: connection,
                method: words[0],
                target: words.count > 1 ? words[1] : "",
                head: head,
                count: count,
                digest: stream.digest(),
                isComplete: isComplete,
                wasReset: wasReset
            )
            let isAnswered = condition.withLock {
                requests.append(seen)
                condition.broadcast()
                return unanswered.remove(seen.target) == nil
            }
            guard isComplete, isAnswered else { return }
            try reader.socket.send("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 3\r\n\r\nok\n")
        }
    }

    /// Reads no content until ``resume()``.
    func pause() { condition.withLock { isPaused = true } }

    func resume() {
        condition.withLock {
            isPaused = false
            condition.broadcast()
        }
    }

    /// Takes the next request for a target and ends its connection without an answer.
    func leaveUnanswered(_ target: String) {
        _ = condition.withLock { unanswered.insert(target) }
    }

    /// Connections that were made to it.
    var connectionCount: Int { condition.withLock { accepted } }

    /// Waits until so many heads have come.
    func awaitHeads(_ count: Int) throws {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        try condition.withLock {
            while begun < count {
                guard condition.wait(until: deadline) else {
                    throw ChildProcess.Failure(description: "the origin saw \(begun) heads")
                }
            }
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
