import Dispatch
import LoopbackKit

/// A client that plays exchanges on connections of its own, and compares what comes.
struct RandomClient: Sendable {
    let port: UInt16
    let mayStall: Bool
    let findings: ExchangeFindings
    /// On which each connection sends while it reads.
    private let senders = DispatchQueue(label: "tests.senders", attributes: .concurrent)

    init(port: UInt16, mayStall: Bool, findings: ExchangeFindings) {
        (self.port, self.mayStall, self.findings) = (port, mayStall, findings)
    }

    // MARK: HTTP/1.1

    /// Plays exchanges on one connection, one sent behind the other. The last one may end it.
    func play(_ exchanges: [RandomExchange]) throws {
        let wire = try Wire(port: port)
        if exchanges.last?.clientBreak?.ending == .freeze { wire.haveSmallBuffer() }
        switch exchanges.last?.clientBreak?.ending {
        case .close?:
            send(exchanges, wire)
            wire.close()
        case .reset?:
            send(exchanges, wire)
            wire.reset()
        case .freeze?:
            send(exchanges, wire)
            _ = wire.isReset(within: RandomOrigin.stallMilliseconds)
            wire.close()
        case .stall?, nil:
            let sending = DispatchGroup()
            senders.async(group: sending) { send(exchanges, wire) }
            read(exchanges, wire)
            // The rest of what it has to say goes nowhere any more.
            wire.cut()
            sending.wait()
            wire.close()
        }
    }

    private func send(_ exchanges: [RandomExchange], _ wire: Wire) {
        for exchange in exchanges {
            let bytes = exchange.request
            let end = min(exchange.clientBreak?.at ?? bytes.count, bytes.count)
            do {
                for piece in exchange.pieces(of: bytes[..<end]) { try wire.send(piece) }
            } catch WireFault.timedOut {
                findings.note(exchange, "the gateway neither took content nor ended the connection")
                return
            } catch {
                // The gateway has ended the connection: what it has answered is judged.
                return
            }
        }
    }

    private func read(_ exchanges: [RandomExchange], _ wire: Wire) {
        var isKept = true
        for exchange in exchanges {
            do {
                let answer = try readAnswer(exchange, wire)
                judge(answer, exchange, isKept: isKept)
                isKept = isKept && exchange.keepsConnection && answer.keepsConnection
                guard answer.isComplete, answer.keepsConnection else { return }
            } catch WireFault.timedOut {
                return findings.note(exchange, "no end of the exchange")
            } catch WireFault.ended, WireFault.reset {
                if isKept, isSure(exchange) { findings.note(exchange, "no answer") }
                return
            } catch {
                return findings.note(exchange, "what came is no response: \(error)")
            }
        }
    }

    /// What has come for one request.
    private struct Answer {
        var status: Int
        /// The exchange that it names; `nil` for an answer of the gateway.
        var number: UInt64?
        var content: [UInt8] = []
        var isComplete = false
        var keepsConnection = true
    }

    private func readAnswer(_ exchange: RandomExchange, _ wire: Wire) throws -> Answer {
        var head = try wire.readHead()
        while try head.status() < 200 { head = try wire.readHead() }
        var answer = Answer(
            status: try head.status(),
            number: head.value("x-exchange").flatMap { UInt64($0) }
        )
        answer.keepsConnection = head.value("connection") != "close"
        if exchange.method == "HEAD" || answer.status == 204 || answer.status == 304 {
            answer.isComplete = true
            return answer
        }
        do {
            try wire.streamContent(of: head, in: .response) { answer.content += $0 }
            answer.isComplete = true
        } catch WireFault.ended, WireFault.reset {}
        return answer
    }

    // MARK: HTTP/2

    /// Plays exchanges on the streams of one connection at once.
    func playHTTP2(_ exchanges: [RandomExchange]) throws {
        let wire = try Wire(port: port)
        let client = try HTTP2Client(wire)
        client.opensWindows = exchanges.last?.clientBreak?.ending != .freeze
        var open: [(id: UInt32, exchange: RandomExchange)] = []
        do {
            for exchange in exchanges {
                guard try begin(exchange, client, &open) else { return wire.close() }
            }
            for (id, exchange) in open where exchange.clientBreak?.ending != .reset {
                judge(answer(try client.answer(id)), exchange, isKept: true)
            }
        } catch WireFault.timedOut {
            for (id, exchange) in open where !isOver(client.soFar(id)) {
                findings.note(exchange, "no end of the exchange")
            }
        } catch WireFault.ended, WireFault.reset {
            for (id, exchange) in open where !isOver(client.soFar(id)) && isSure(exchange) {
                findings.note(exchange, "the gateway has ended the connection")
            }
        }
        wire.close()
    }

    private func isOver(_ answer: HTTP2Client.Answer) -> Bool {
        answer.isComplete || answer.reset != nil
    }

    /// Whether the connection stays.
    private func begin(
        _ exchange: RandomExchange,
        _ client: HTTP2Client,
        _ open: inout [(id: UInt32, exchange: RandomExchange)]
    ) throws -> Bool {
        let fields = [
            (":method", exchange.method), (":scheme", "http"), (":authority", "a.test"),
            (":path", "/\(exchange.number)"),
        ]
        let id = try client.open(fields, ends: exchange.upload == nil)
        open.append((id, exchange))
        guard let stop = exchange.clientBreak else {
            if let upload = exchange.upload { try client.sendInTime(upload, on: id) }
            return true
        }
        if let upload = exchange.upload, !upload.isEmpty {
            let part = Array(upload.prefix(min(stop.at, upload.count - 1)))
            _ = try client.sendUntilStalled(part, on: id, milliseconds: 50)
        }
        switch stop.ending {
        case .close: return false
        // CANCEL (RFC 9113 §7).
        case .reset: try client.send(.reset, on: id, HTTP2Client.bytes(8))
        case .stall, .freeze: break
        }
        return true
    }

    private func answer(_ found: HTTP2Client.Answer) -> Answer {
        Answer(
            status: found.status,
            number: found.value("x-exchange").flatMap { UInt64($0) },
            content: found.content,
            isComplete: found.isComplete
        )
    }

    // MARK: Judging

    /// Whether the exchange has to succeed.
    private func isSure(_ exchange: RandomExchange) -> Bool { !mayStall && exchange.isOrderly }

    private func judge(_ answer: Answer, _ exchange: RandomExchange, isKept: Bool) {
        guard let number = answer.number else {
            if isKept, isSure(exchange) {
                let text = String(decoding: answer.content, as: UTF8.self)
                findings.note(exchange, "answered \(answer.status), \(text)")
            }
            return
        }
        guard number == exchange.number else {
            return findings.note(exchange, "given the answer of \(number)")
        }
        if answer.status != exchange.status {
            findings.note(exchange, "\(answer.status) in the place of \(exchange.status)")
        }
        // Content until the end of the connection is cut by any end of it but a reset, and a side
        // that has stopped closes its connection at last.
        let ending = exchange.framing == .untilClose ? exchange.answerBreak?.ending : nil
        let mayBeCut = ending.map { $0 != .reset } ?? false
        let isRight =
            RandomExchange.are(answer.content, theFirstOf: exchange.download)
            && (!answer.isComplete || mayBeCut || answer.content.count == exchange.download.count)
        if !isRight {
            let words = answer.isComplete ? "as the whole content" : "as content"
            findings.note(
                exchange,
                "given \(words) \(answer.content.count) bytes that are not the origin's"
            )
        }
        if !answer.isComplete, isKept, isSure(exchange) {
            findings.note(exchange, "cut off behind \(answer.content.count) bytes")
        }
    }
}
