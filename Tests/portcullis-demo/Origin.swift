import Cryptography
import Dispatch
import Foundation
import HTTPWire
import LoopbackSockets
import Synchronization

/// The API: a small server that knows no App Attest and records its requests. A thread for each
/// connection.
final class Origin: Sendable {
    private struct Record {
        var sightings: [Sighting] = []
        /// The number of requests that the story has taken.
        var taken = 0
        /// Bytes of content of the request under way.
        var bytesUnderWay = 0
    }

    /// On 127.0.0.1.
    let port: UInt16
    private let record = Mutex(Record())
    // The style has no semaphores. Here one thread tells a story about what another one sees.
    private let news = DispatchSemaphore(value: 0)

    init() throws(ToolError) {
        let (listener, port) = try Socket.listening()
        self.port = port
        Thread.detachNewThread { [self] in
            while let socket = listener.accepted() {
                Thread.detachNewThread { self.serve(socket) }
            }
        }
    }

    /// All requests that reached it so far.
    var count: Int { record.withLock { $0.sightings.count } }

    /// The number of requests that the story has not taken yet.
    var untoldCount: Int { record.withLock { $0.sightings.count - $0.taken } }

    /// The next request that the story has not taken yet; waits for it.
    func next() throws(ToolError) -> Sighting {
        try wait("the origin saw no request") { record in
            guard record.taken < record.sightings.count else { return nil }
            defer { record.taken += 1 }
            return record.sightings[record.taken]
        }
    }

    /// Waits until this number of bytes of the content under way have come.
    func awaitBytes(_ count: Int) throws(ToolError) {
        try wait("the origin saw no byte of the upload") { record in
            record.bytesUnderWay >= count ? () : nil
        }
    }

    private func wait<Value: Sendable>(
        _ failure: String,
        until look: (inout Record) -> Value?
    ) throws(ToolError) -> Value {
        // Ample: a debug build on a busy machine is slow, not broken.
        let end = DispatchTime.now() + .seconds(60)
        while true {
            if let value = record.withLock({ look(&$0) }) { return value }
            guard news.wait(timeout: end) == .success else { throw ToolError(failure) }
        }
    }

    private func serve(_ socket: Socket) {
        let reader = MessageReader(socket, .request(isSecure: false))
        do throws(ToolError) {
            while let head = try reader.head() {
                guard try take(head, reader, socket) else { return }
                try socket.write(Self.reply(to: head).utf8)
            }
        } catch {
            // The gateway closes idle connections when it likes.
            return
        }
    }

    /// When a trial is granted, the origin has Apple set bit 0 of the device.
    private static func reply(to head: MessageReader.Head) -> String {
        let isTrial = head.line.hasPrefix("POST /v1/trial ")
        let bits = isTrial ? "App-Attest-Device-Bits: 1,-\r\n" : ""
        let fields = "Content-Type: text/plain\r\nContent-Length: 3\r\n"
        return "HTTP/1.1 200 OK\r\n\(bits)\(fields)\r\nok\n"
    }

    /// Reads one content and records the request.
    ///
    /// - Returns: whether it was complete.
    private func take(
        _ head: MessageReader.Head,
        _ reader: MessageReader,
        _ socket: Socket
    ) throws(ToolError) -> Bool {
        var digest = SHA256.Stream()
        var count = 0
        record.withLock { $0.bytesUnderWay = 0 }
        let isComplete = try reader.content(of: head) { piece in
            digest.update(piece.span)
            count += piece.count
            record.withLock { $0.bytesUnderWay += piece.count }
            news.signal()
        }
        let sighting = Sighting(
            head: head,
            contentCount: count,
            digest: digest.digest(),
            isComplete: isComplete,
            wasReset: socket.wasReset
        )
        record.withLock { $0.sightings.append(sighting) }
        news.signal()
        return isComplete
    }
}

/// A request as the origin saw it.
struct Sighting: Sendable {
    let head: MessageReader.Head
    /// Bytes of content.
    let contentCount: Int
    /// SHA-256 of the content that came.
    let digest: SHA256Digest
    /// Whether the content is complete. This origin acts on complete requests only; many others
    /// don't.
    let isComplete: Bool
    /// Whether a reset came instead of the end.
    let wasReset: Bool

    /// Method and target.
    var requestLine: String { head.line.split(separator: " ").prefix(2).joined(separator: " ") }

    /// A field's value.
    subscript(name: String) -> String? { head[name] }
}
