import Foundation
import Glibc
import LoopbackKit

/// An origin that does to a response what the request's target asks for, such as
/// `/stage/in-chunk/reset`.
///
/// `@unchecked Sendable`: what changes is touched under `condition`; the listener is set once.
final class FaultyOrigin: @unchecked Sendable {
    /// How far a response goes.
    enum Stage: String, CaseIterable, Sendable {
        case beforeHead = "before-head"
        case inHead = "in-head"
        case afterHead = "after-head"
        case inContent = "in-content"
        case inChunkSize = "in-chunk-size"
        case inChunk = "in-chunk"
        case afterChunk = "after-chunk"
        case inTrailers = "in-trailers"
        case afterEnd = "after-end"

        private static let line = "HTTP/1.1 200 OK\r\n"
        private static let chunked = line + "Transfer-Encoding: chunked\r\n\r\n"

        /// What is sent of it.
        var bytes: String {
            switch self {
            case .beforeHead: ""
            case .inHead: Self.line + "Content-Le"
            case .afterHead: Self.line + "Content-Length: 10\r\n\r\n"
            case .inContent: Self.line + "Content-Length: 10\r\n\r\nhello"
            case .inChunkSize: Self.chunked + "5\r\nhello\r\n5"
            case .inChunk: Self.chunked + "5\r\nhel"
            case .afterChunk: Self.chunked + "5\r\nhello\r\n"
            case .inTrailers: Self.chunked + "5\r\nhello\r\n0\r\nTrail"
            case .afterEnd: Self.line + "Content-Length: 3\r\n\r\nok\n"
            }
        }
    }

    /// What happens then.
    enum Ending: String, CaseIterable, Sendable { case reset, end, stall }

    /// What is no response.
    enum Nonsense: String, CaseIterable, Sendable {
        case bytes, otherProtocol, twoLengths, endlessHead, badChunk, interims

        var text: String {
            let line = "HTTP/1.1 200 OK\r\n"
            return switch self {
            case .bytes: "\0\u{1}\0nonsense\r\n\r\n"
            case .otherProtocol: "220 mail.example.com ESMTP\r\n"
            case .twoLengths: line + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"
            case .endlessHead: line + String(repeating: "A: b\r\n", count: 10_000)
            case .badChunk: line + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"
            case .interims: String(repeating: "HTTP/1.1 103 Early Hints\r\n\r\n", count: 17)
            }
        }
    }

    private var listener: TestOrigin?
    private let condition = NSCondition()
    private var heldCount = 0
    private var passes = 0

    init() throws {
        listener = try TestOrigin { [self] connection in try serve(connection) }
    }

    var address: String { listener?.address ?? "" }

    func end() { listener?.stop() }

    private func serve(_ connection: OriginConnection) throws {
        let wire = connection.wire
        var isFirst = true
        while let request = try connection.nextHead() {
            let parts = request.target.split(separator: "/").map(String.init)
            if parts.first == "unread" { return wire.awaitHangup() }
            _ = try connection.finish(request)
            switch parts.first {
            case "stage":
                guard parts.count >= 3, let stage = Stage(rawValue: parts[1]),
                    let ending = Ending(rawValue: parts[2])
                else { return }
                guard try play(stage, ending, connection) else { return }
            case "nonsense":
                guard parts.count >= 2, let nonsense = Nonsense(rawValue: parts[1]) else { return }
                try wire.send(nonsense.text)
                return try connection.awaitEnd()
            case "surplus":
                try wire.send(Stage.afterEnd.bytes + Stage.afterEnd.bytes)
                return try connection.awaitEnd()
            // A pooled connection ends in the moment in which it is used again.
            case "stale" where !isFirst: return
            case "held": try hold(wire)
            case "tunnel": return try tunnel(wire)
            case "endless":
                try wire.send("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
                let block = [UInt8](repeating: 0x61, count: 1 << 16)
                while true { try wire.send(block) }
            default: try wire.send(Stage.afterEnd.bytes)
            }
            isFirst = false
        }
    }

    /// - Returns: whether the connection serves another request.
    private func play(
        _ stage: Stage,
        _ ending: Ending,
        _ connection: OriginConnection
    ) throws -> Bool {
        try connection.wire.send(stage.bytes)
        switch ending {
        case .reset:
            // It may overtake bytes that were not acknowledged.
            try connection.wire.awaitTaken()
            connection.wire.reset()
        case .end: break
        case .stall where stage == .afterEnd: return true
        case .stall: try connection.awaitEnd()
        }
        return false
    }

    // MARK: Held requests

    private func hold(_ wire: Wire) throws {
        condition.withLock {
            heldCount += 1
            condition.broadcast()
            while passes == 0 { condition.wait() }
            passes -= 1
            heldCount -= 1
        }
        try wire.send(Stage.afterEnd.bytes)
    }

    /// Agrees to a tunnel and floods it; when nothing more is taken, it counts as held until the
    /// gateway ends it.
    private func tunnel(_ wire: Wire) throws {
        try wire.send(
            """
            HTTP/1.1 101 Switching Protocols\r
            Connection: Upgrade\r
            Upgrade: websocket\r
            \r

            """
        )
        let block = [UInt8](repeating: 0x61, count: 1 << 16)
        while try wire.sendUntilStalled(block, milliseconds: 200) == block.count {}
        condition.withLock {
            heldCount += 1
            condition.broadcast()
        }
        wire.awaitHangup()
        condition.withLock {
            heldCount -= 1
            condition.broadcast()
        }
    }

    /// Waits until so many requests to `/held` have come, or, for 0, until none is left.
    func awaitHeld(_ count: Int) throws {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        try condition.withLock {
            while count == 0 ? heldCount > 0 : heldCount < count {
                guard condition.wait(until: deadline) else {
                    throw ChildProcess.Failure(description: "\(heldCount) held, not \(count)")
                }
            }
        }
    }

    /// How many are held now.
    var held: Int { condition.withLock { heldCount } }

    /// Answers one of them.
    func release() {
        condition.withLock {
            passes += 1
            condition.broadcast()
        }
    }
}
