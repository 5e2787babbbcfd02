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
        var octets: String {
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
        case octets, otherProtocol, twoLengths, endlessHead, badChunk, interims

        var text: String {
            let line = "HTTP/1.1 200 OK\r\n"
            return switch self {
            case .octets: "\0\u{1}\0nonsense\r\n\r\n"
            case .otherProtocol: "220 mail.example.com ESMTP\r\n"
            case .twoLengths: line + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"
            case .endlessHead: line + String(repeating: "A: b\r\n", count: 10_000)
            case .badChunk: line + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"
            case .interims: String(repeating: "HTTP/1.1 103 Early Hints\r\n\r\n", count: 17)
            }
        }
    }

    private var listener: LoopbackListener?
    private let condition = NSCondition()
    private var heldCount = 0
    private var passes = 0

    init() throws {
        listener = try LoopbackListener { [self] reader in try serve(reader) }
    }

    var address: String { "127.0.0.1:\(listener?.port ?? 0)" }

    func end() { listener?.end() }

    private func serve(_ reader: MessageReader) throws {
        var isFirst = true
        while let head = try reader.head() {
            let target = head.startLine.split(separator: " ").dropFirst().first ?? "/"
            let parts = target.split(separator: "/").map(String.init)
            if parts.first == "unread" { return reader.socket.awaitHangup() }
            guard try reader.content(of: head, untilEnd: false, { _ in }) else { return }
            switch parts.first {
            case "stage":
                guard parts.count >= 3, let stage = Stage(rawValue: parts[1]),
                    let ending = Ending(rawValue: parts[2])
                else { return }
                guard try play(stage, ending, reader) else { return }
            case "nonsense":
                guard parts.count >= 2, let nonsense = Nonsense(rawValue: parts[1]) else { return }
                try reader.socket.send(nonsense.text)
                return try reader.awaitEnd()
            case "surplus":
                try reader.socket.send(Stage.afterEnd.octets + Stage.afterEnd.octets)
                return try reader.awaitEnd()
            // A pooled connection ends in the moment in which it is used again.
            case "stale" where !isFirst: return
            case "held": try hold(reader)
            case "tunnel": return try tunnel(reader)
            case "endless":
                try reader.socket.send("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
                let block = [UInt8](repeating: 0x61, count: 1 << 16)
                while true { try reader.socket.send(block) }
            default: try reader.socket.send(Stage.afterEnd.octets)
            }
            isFirst = false
        }
    }

    /// - Returns: whether the connection serves another request.
    private func play(
        _ stage: Stage,
        _ ending: Ending,
        _ reader: MessageReader
    ) throws -> Bool {
        try reader.socket.send(stage.octets)
        switch ending {
        case .reset: reader.socket.resetsAtEnd()
        case .end: break
        case .stall where stage == .afterEnd: return true
        case .stall: try reader.awaitEnd()
        }
        return false
    }

    // MARK: Held requests

    private func hold(_ reader: MessageReader) throws {
        condition.withLock {
            heldCount += 1
            condition.broadcast()
            while passes == 0 { condition.wait() }
            passes -= 1
            heldCount -= 1
        }
        try reader.socket.send(Stage.afterEnd.octets)
    }

    /// Agrees to a tunnel and floods it; when nothing more is taken, it counts as held until the
    /// gateway ends it.
    private func tunnel(_ reader: MessageReader) throws {
        try reader.socket.send(
            """
            HTTP/1.1 101 Switching Protocols\r
            Connection: Upgrade\r
            Upgrade: websocket\r
            \r

            """
        )
        try reader.socket.sendUntilStalled([UInt8](repeating: 0x61, count: 1 << 16))
        condition.withLock {
            heldCount += 1
            condition.broadcast()
        }
        reader.socket.awaitHangup()
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

extension MessageReader {
    /// Reads away what comes until the other side ends.
    func awaitEnd() throws { while try !socket.receive().isEmpty {} }
}
