import LoopbackKit
import Synchronization
import TestSupport

/// Plays a response case: the origin sends its bytes, and the client says what became of them.
struct ResponseReplay {
    private static let good = "GET /good HTTP/1.1\r\nHost: proxy.test\r\n\r\n"
    private static let contents = [
        "own-rsp-cl": "hello", "own-rsp-chunked": "hello", "own-rsp-close": "hello",
        "own-rsp-long": "hello", "own-rsp-100": "ok", "own-rsp-103": "ok",
    ]
    private static let statuses = [
        "own-rsp-304-cl": 304, "own-rsp-204-body": 204, "own-rsp-early": 413,
    ]

    /// The case that an origin plays now, and how.
    final class Stage: Sendable {
        let current = Mutex<(one: HTTPCase, delivery: Delivery)?>(nil)

        /// The origin's part.
        var script: TestOrigin.Script {
            { connection in
                while let head = try connection.nextHead() {
                    guard head.target != "/good",
                        let (one, delivery) = self.current.withLock({ $0 })
                    else {
                        try connection.answer(200, body: "ok", to: connection.finish(head))
                        continue
                    }
                    let isEarly = one.expect.early ?? (one.id == "own-rsp-early")
                    if !isEarly { _ = try connection.finish(head) }
                    do {
                        for piece in delivery.pieces(one.bytes) {
                            try connection.wire.send(piece)
                        }
                    } catch WireFault.reset {
                        // The gateway has seen enough of it.
                        return
                    }
                    if Self.ends(one) { connection.wire.finishSending() }
                    return try connection.awaitEnd()
                }
            }
        }

        /// Whether the origin's end belongs to the case. Where not, the gateway has to end the
        /// connection by itself.
        private static func ends(_ one: HTTPCase) -> Bool {
            if let ends = one.expect.origin_ends { return ends }
            return switch one.expect.action {
            case "accept-close", "limit": false
            case "reject": one.id == "own-rsp-h09"
            case "abort": one.id == "own-rsp-short" || one.id == "own-rsp-chunk-trunc"
            default: true
            }
        }
    }

    let one: HTTPCase
    let bench: Bench
    let stage: Stage
    let delivery: Delivery

    /// What differs from the expectation; `nil` when nothing does.
    func fault() throws -> String? {
        stage.current.withLock { $0 = (one, delivery) }
        let client = try bench.connect()
        if delivery == .pipelined {
            try client.send(Self.good)
            guard try client.readFinalResponse().text == "ok" else { return "no good response" }
        }
        let method = one.request_method ?? "GET"
        let content = method == "POST" ? "Content-Length: 100000\r\n" : ""
        try client.send("\(method) /case HTTP/1.1\r\nHost: proxy.test\r\n\(content)\r\n")
        if !content.isEmpty { try client.send([UInt8](repeating: 120, count: 1000)) }
        var interim: [Int] = []
        var answer: WireResponse?
        var end: WireFault?
        do {
            while answer == nil {
                let response = try client.readResponse(to: method)
                if response.status < 200 {
                    interim.append(response.status)
                } else {
                    answer = response
                }
            }
        } catch let fault as WireFault {
            end = fault
        }
        if let fault = judge(answer, interim, end) { return fault }
        if delivery == .pipelined, !bench.origin.connections.contains(where: Self.isReused) {
            return "the case did not come behind a good response"
        }
        // Where the origin has not ended the connection, the gateway has to, before it is asked for
        // another response.
        guard isOriginReleased else { return "the origin's connection is kept" }
        let next = try bench.connect()
        try next.send(Self.good)
        guard try next.readFinalResponse().text == "ok" else { return "the next request failed" }
        return bench.origin.connections.compactMap(\.fault).first.map { "the origin saw \($0)" }
    }

    private var isOriginReleased: Bool {
        bench.origin.wait { $0.allSatisfy { !$0.isOpen || $0.heads.last?.target == "/good" } }
    }

    private static func isReused(_ log: TestOrigin.ConnectionLog) -> Bool {
        log.heads.map(\.target).suffix(2) == ["/good", "/case"]
    }

    private func judge(
        _ answer: WireResponse?,
        _ interim: [Int],
        _ end: WireFault?
    ) -> String? {
        let outcome = answer.map { "\($0.status) \($0.text)" } ?? "\(end.map { "\($0)" } ?? "-")"
        let isBadGateway = answer?.status == 502
        let isAsMeant =
            answer?.status == one.expect.status?.first ?? Self.statuses[one.id, default: 200]
            && answer?.text == one.expect.body ?? Self.contents[one.id, default: ""]
        let isRight: Bool
        switch one.expect.action {
        case "accept", "accept-close", "normalise":
            isRight = isAsMeant && hasRightFields(answer, interim)
        case "reject": isRight = isBadGateway
        case "limit": isRight = isBadGateway && interim.count <= 16
        case "abort": isRight = answer == nil && (end == .ended || end == .reset)
        case "reject-or-normalise": isRight = isBadGateway || isAsMeant
        default: return "unknown action \(one.expect.action)"
        }
        return isRight ? nil : "the client got \(outcome), interim \(interim)"
    }

    private func hasRightFields(_ answer: WireResponse?, _ interim: [Int]) -> Bool {
        guard let answer else { return false }
        let head = answer.head
        guard !head.has("x-hop"), !head.has("x-app-attest-verdict"), head.has("date") else {
            return false
        }
        guard one.expect.interim ?? interim == interim else { return false }
        for name in one.expect.strip ?? [] where head.has(name) { return false }
        for (name, values) in one.expect.fields ?? [:] where head.all(name) != values {
            return false
        }
        switch one.id {
        case "own-rsp-wscolon": return head.value("X-A") == "b"
        case "own-rsp-204-body": return !head.has("content-length")
        case "own-rsp-103": return interim == [103]
        case "own-rsp-trailer": return answer.trailers.isEmpty
        case "own-rsp-head-cl", "own-rsp-304-cl": return head.value("content-length") == "500"
        default: return true
        }
    }
}
