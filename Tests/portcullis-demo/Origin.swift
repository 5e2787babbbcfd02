import Cryptography
import Dispatch
import Foundation
import LoopbackKit
import Synchronization

/// The API: a small server that knows no App Attest and records its requests.
final class Origin: Sendable {
    /// On 127.0.0.1.
    let port: UInt16
    private let seen: SeenRequests

    init() throws {
        let seen = SeenRequests()
        self.seen = seen
        port = try TestOrigin { try seen.serve($0) }.port
    }

    /// The number of requests that the story has not taken yet.
    var untoldCount: Int { seen.untoldCount }

    /// The next request that the story has not taken yet; waits for it.
    func next() throws -> Sighting { try seen.next() }

    /// Waits until this number of bytes of the content under way have come.
    func awaitBytes(_ count: Int) throws { try seen.awaitBytes(count) }
}

/// The requests that an origin saw, and who waits for them.
private final class SeenRequests: Sendable {
    private struct Record {
        var sightings: [Sighting] = []
        /// The number of requests that the story has taken.
        var taken = 0
        /// Bytes of content of the request under way.
        var bytesUnderWay = 0
    }

    private let record = Mutex(Record())
    // The style has no semaphores. Here one thread tells a story about what another one sees.
    private let news = DispatchSemaphore(value: 0)

    /// The number of requests that the story has not taken yet.
    var untoldCount: Int { record.withLock { $0.sightings.count - $0.taken } }

    /// The next request that the story has not taken yet; waits for it.
    func next() throws -> Sighting {
        try wait("the origin saw no request") { record in
            guard record.taken < record.sightings.count else { return nil }
            defer { record.taken += 1 }
            return record.sightings[record.taken]
        }
    }

    /// Waits until this number of bytes of the content under way have come.
    func awaitBytes(_ count: Int) throws {
        try wait("the origin saw no byte of the upload") { record in
            record.bytesUnderWay >= count ? () : nil
        }
    }

    private func wait<Value: Sendable>(
        _ failure: String,
        until look: (inout Record) -> Value?
    ) throws -> Value {
        // Ample: a debug build on a busy machine is slow, not broken.
        let end = DispatchTime.now() + .seconds(60)
        while true {
            if let value = record.withLock({ look(&$0) }) { return value }
            guard news.wait(timeout: end) == .success else { throw StoryFault(failure) }
        }
    }

    /// Answers the requests of a connection, of which the gateway closes idle ones when it likes.
    func serve(_ connection: OriginConnection) throws {
        while let request = try connection.nextHead() {
            guard take(request, connection.wire) else { return }
            // When a trial is granted, the origin has Apple set bit 0 of the device.
            let bits = request.target == "/v1/trial" ? "App-Attest-Device-Bits: 1,-\r\n" : ""
            let fields = bits + "Content-Type: text/plain\r\n"
            try connection.answer(200, body: "ok\n", fields: fields, to: request)
        }
    }

    /// Reads one content and records the request.
    ///
    /// - Returns: whether it was complete.
    private func take(_ request: WireRequest, _ wire: Wire) -> Bool {
        var digest = SHA256.Stream()
        var count = 0
        var fault: (any Error)?
        record.withLock { $0.bytesUnderWay = 0 }
        do {
            try wire.streamContent(of: request.head, in: .request) { piece in
                digest.update(piece.span)
                count += piece.count
                record.withLock { $0.bytesUnderWay += piece.count }
                news.signal()
            }
        } catch {
            fault = error
        }
        let sighting = Sighting(
            requestLine: "\(request.method) \(request.target)",
            fields: request.head.fields,
            contentCount: count,
            digest: digest.digest(),
            isComplete: fault == nil,
            wasReset: fault as? WireFault == .reset
        )
        record.withLock { $0.sightings.append(sighting) }
        news.signal()
        return fault == nil
    }
}

/// A request as the origin saw it.
struct Sighting: Sendable {
    /// Method and target.
    let requestLine: String
    let fields: [(name: String, value: String)]
    /// Bytes of content.
    let contentCount: Int
    /// SHA-256 of the content that came.
    let digest: SHA256Digest
    /// Whether the content is complete. This origin acts on complete requests only; many others
    /// don't.
    let isComplete: Bool
    /// Whether a reset came instead of the end.
    let wasReset: Bool

    /// The value of a field's first line.
    subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}
