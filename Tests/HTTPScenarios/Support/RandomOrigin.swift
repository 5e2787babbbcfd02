import Glibc
import LoopbackKit
import Synchronization

/// What was wrong in exchanges, whoever has seen it.
final class ExchangeFindings: Sendable {
    private let texts = Mutex<[String]>([])

    func note(_ exchange: RandomExchange, _ text: String) {
        texts.withLock { $0.append("exchange \(exchange.number): \(text)") }
    }

    var all: [String] { texts.withLock { $0 } }
}

/// An origin that plays the exchanges that it is asked for.
struct RandomOrigin: Sendable {
    /// A side has ended as its exchange says.
    private struct Ended: Error {
        let ending: RandomExchange.Ending
    }

    /// How long a side that has stopped keeps its connection. The gateway's times are over before.
    static let stallMilliseconds: Int32 = 1_500

    let mayStall: Bool
    let findings: ExchangeFindings

    // MARK: HTTP/1.1

    var script: TestOrigin.Script {
        { connection in
            do {
                while let request = try connection.nextHead() {
                    guard let exchange = exchange(request.target) else { return }
                    try serve(exchange, request, connection)
                    if exchange.endsWithAnswer { return }
                }
            } catch let ended as Ended {
                end(connection.wire, ended.ending)
            }
        }
    }

    private func exchange(_ target: String) -> RandomExchange? {
        RandomExchange(target: target, mayStall: mayStall)
    }

    private func serve(
        _ exchange: RandomExchange,
        _ request: WireRequest,
        _ connection: OriginConnection
    ) throws {
        if exchange.readingBreak?.ending == .freeze { connection.wire.haveSmallBuffer() }
        if exchange.answersEarly { try answer(exchange, connection.wire) }
        if exchange.upload != nil { try read(exchange, request, connection.wire) }
        if !exchange.answersEarly { try answer(exchange, connection.wire) }
    }

    /// Reads a request's content, and compares it.
    private func read(_ exchange: RandomExchange, _ request: WireRequest, _ wire: Wire) throws {
        var taken: [UInt8] = []
        do {
            try wire.streamContent(of: request.head, in: .request) { piece in
                taken += piece
                if let stop = exchange.readingBreak, taken.count >= stop.at {
                    throw Ended(ending: stop.ending)
                }
            }
            compare(exchange, taken, isWhole: true)
        } catch {
            compare(exchange, taken, isWhole: false)
            throw error
        }
    }

    /// Compares content that has come with the client's.
    private func compare(_ exchange: RandomExchange, _ taken: [UInt8], isWhole: Bool) {
        guard let upload = exchange.upload else { return }
        if !RandomExchange.are(taken, theFirstOf: upload) || isWhole && taken.count != upload.count
        {
            let words =
                isWhole ? "the origin was given as the whole content" : "the origin was given"
            findings.note(exchange, "\(words) \(taken.count) bytes that are not the client's")
        }
    }

    private func answer(_ exchange: RandomExchange, _ wire: Wire) throws {
        let bytes = exchange.answer
        // The end of a connection behind a whole response could meet the next request on it.
        let end = exchange.answerBreak.map { min($0.at, bytes.count - 1) } ?? bytes.count
        for piece in exchange.pieces(of: bytes[..<end]) { try wire.send(piece) }
        if let stop = exchange.answerBreak { throw Ended(ending: stop.ending) }
    }

    private func end(_ wire: Wire, _ ending: RandomExchange.Ending) {
        switch ending {
        case .close: wire.finishSending()
        case .reset: wire.reset()
        case .stall: while wire.isReadable(within: Self.stallMilliseconds), hasMore(wire) {}
        case .freeze: _ = wire.isReset(within: Self.stallMilliseconds)
        }
    }

    private func hasMore(_ wire: Wire) -> Bool {
        do {
            try wire.receive()
            wire.inbox = []
            return true
        } catch {
            return false
        }
    }

    // MARK: HTTP/2

    var http2Script: TestOrigin.Script {
        { connection in
            let server = try HTTP2Server(connection)
            while let (id, head) = try server.nextHead() {
                guard let exchange = exchange(head.path) else { return }
                try serve(exchange, id, server)
            }
        }
    }

    private func serve(_ exchange: RandomExchange, _ id: UInt32, _ server: HTTP2Server) throws {
        if exchange.answersEarly { guard try answer(exchange, id, server) else { return } }
        if exchange.upload != nil {
            let stop = exchange.readingBreak
            let request = try server.read(id) { request in
                request.isComplete || request.reset != nil
                    || stop.map { request.content.count >= $0.at } ?? false
            }
            compare(exchange, request.content, isWhole: request.isComplete)
            if request.reset != nil { return }
            if let stop, !request.isComplete { return try end(id, stop.ending, server) }
        }
        if !exchange.answersEarly { _ = try answer(exchange, id, server) }
    }

    /// Whether the response was sent whole.
    private func answer(
        _ exchange: RandomExchange,
        _ id: UInt32,
        _ server: HTTP2Server
    ) throws -> Bool {
        for _ in 0..<exchange.interimCount { try server.sendHead(id, [(":status", "103")]) }
        let fields = [(":status", "\(exchange.status)"), ("x-exchange", "\(exchange.number)")]
        let end = exchange.answerBreak.map { min($0.at, exchange.download.count) }
        let content = Array(exchange.download[..<(end ?? exchange.download.count)])
        try server.sendHead(id, fields, ends: end == nil && content.isEmpty)
        if !content.isEmpty { try server.sendContent(content, on: id, ends: end == nil) }
        guard let stop = exchange.answerBreak else { return true }
        try self.end(id, stop.ending, server)
        return false
    }

    /// A connection's end would end the other streams, too, so that a close is a reset here.
    private func end(
        _ id: UInt32,
        _ ending: RandomExchange.Ending,
        _ server: HTTP2Server
    ) throws {
        switch ending {
        // INTERNAL_ERROR (RFC 9113 §7).
        case .close, .reset: try server.reset(id, 2)
        // Nothing more is sent on the stream; the others go on.
        case .stall, .freeze: break
        }
    }
}

extension Wire {
    /// Has the kernel keep little of what comes, so that the other side has to wait.
    func haveSmallBuffer() { Self.set(descriptor, SOL_SOCKET, SO_RCVBUF, 4_096) }
}
