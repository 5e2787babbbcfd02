import Cryptography
import EventLoops
import Foundation
import LoopbackKit

/// An origin that writes down what it sees, whole or not, and answers 200. It keeps the digest of
/// content and not the content.
///
/// `@unchecked Sendable`: what changes is touched under `condition`; the listener is set once.
final class RecordingOrigin: @unchecked Sendable {
    /// A request as it arrived.
    struct Seen {
        /// The number of its connection, from zero.
        let connection: Int
        let method: String
        let target: String
        let head: WireHead
        /// Bytes of content that came.
        let count: Int
        let digest: SHA256Digest
        /// Whether its end came.
        let isComplete: Bool
        /// Whether a reset came in place of it.
        let wasReset: Bool
        /// Whether TLS said that it was the end.
        let wasEndedInOrder: Bool
    }

    private let condition = NSCondition()
    private var requests: [Seen] = []
    private var begun = 0
    private var unanswered: Set<String> = []
    private var isPaused = false
    private let fields: String
    private var listener: TestOrigin?

    /// - `fields`: lines for each answer.
    /// - `path`: the file of its socket, where it is not to have a port.
    init(fields: String = "", path: String? = nil, tls: TLSContext? = nil) throws {
        self.fields = fields
        listener = try TestOrigin(path: path, tls: tls) { [self] in try serve($0) }
    }

    var port: UInt16 { listener?.port ?? 0 }

    /// As a configuration writes it.
    var address: String { listener?.address ?? "" }

    /// Ends it, and all connections.
    func end() {
        resume()
        listener?.stop()
    }

    private func serve(_ connection: OriginConnection) throws {
        while let request = try connection.nextHead() {
            condition.withLock {
                begun += 1
                condition.broadcast()
                while isPaused { condition.wait() }
            }
            let seen = Self.seen(request, connection)
            let isAnswered = condition.withLock {
                requests.append(seen)
                condition.broadcast()
                return unanswered.remove(seen.target) == nil
            }
            guard seen.isComplete, isAnswered else { return }
            try connection.answer(200, body: "ok\n", fields: fields, to: request)
        }
    }

    /// Reads the content of a request, whole or not.
    private static func seen(_ request: WireRequest, _ connection: OriginConnection) -> Seen {
        var count = 0
        var stream = SHA256.Stream()
        var fault: (any Error)?
        do {
            try connection.wire.streamContent(of: request.head, in: .request) { piece in
                count += piece.count
                stream.update(piece.span)
            }
        } catch {
            fault = error
        }
        return Seen(
            connection: connection.number,
            method: request.method,
            target: request.target,
            head: request.head,
            count: count,
            digest: stream.digest(),
            isComplete: fault == nil,
            wasReset: fault as? WireFault == .reset,
            wasEndedInOrder: connection.wire.wasEndedInOrder
        )
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
    var connectionCount: Int { listener?.connections.count ?? 0 }

    /// Waits until so many heads have come.
    func awaitHeads(_ count: Int) throws {
        try wait("the origin saw \(begun) heads, not \(count)") { begun >= count }
    }

    /// What was seen so far.
    var seen: [Seen] { condition.withLock { requests } }

    /// What was seen, once there is so much.
    func seen(_ count: Int) throws -> [Seen] {
        try wait("the origin saw \(requests.count) requests, not \(count)") {
            requests.count >= count
        }
        return seen
    }

    /// Waits until this holds; it and the text are asked under `condition`.
    private func wait(_ fault: @autoclosure () -> String, until isTrue: () -> Bool) throws {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        try condition.withLock {
            while !isTrue() {
                guard condition.wait(until: deadline) else {
                    throw ChildProcess.Failure(description: fault())
                }
            }
        }
    }
}
