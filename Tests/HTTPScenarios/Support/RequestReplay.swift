import Cryptography
import Encodings
import Foundation
import LoopbackKit
import TestSupport

/// How the bytes of a case are sent.
enum Delivery: String, CaseIterable, Sendable {
    /// In one write.
    case whole
    /// Each byte in a write of its own.
    case bytes
    /// A write ends behind every CR, LF, `;` and `"`.
    case cuts
    /// Behind a good request, in one write with it; a response behind a good one on its connection.
    case pipelined
    /// In one write, over TLS.
    case tls
    /// In one write, and origin connections are pooled.
    case pooled

    /// The bytes of a case that are cut up; the rest follows in one write.
    private static let cutMax = 1024

    /// The writes in which bytes go out.
    func pieces(_ bytes: [UInt8]) -> [[UInt8]] {
        let ends: Set<UInt8>?
        switch self {
        case .whole, .tls, .pooled, .pipelined: return [bytes]
        case .bytes: ends = nil
        case .cuts: ends = [13, 10, UInt8(ascii: ";"), UInt8(ascii: "\"")]
        }
        var pieces: [[UInt8]] = [[]]
        for byte in bytes.prefix(Self.cutMax) {
            pieces[pieces.count - 1].append(byte)
            if ends?.contains(byte) ?? true { pieces.append([]) }
        }
        pieces[pieces.count - 1] += bytes.dropFirst(Self.cutMax)
        return pieces.filter { !$0.isEmpty }
    }
}

/// Plays a request case against a gateway and looks at both of its sides.
struct RequestReplay {
    /// The request that is tried after each case.
    private static let goodTarget = "/good-afterwards"
    /// The request that is sent before it, where it is pipelined.
    private static let first = Array("GET /first HTTP/1.1\r\nHost: proxy.test\r\n\r\n".utf8)

    let one: HTTPCase
    let bench: Bench
    let delivery: Delivery

    private var answers: [WireResponse] = []
    /// How the connection ended for the client.
    private var end: WireFault?

    init(_ one: HTTPCase, _ bench: Bench, _ delivery: Delivery) {
        self.one = one
        self.bench = bench
        self.delivery = delivery
    }

    /// What differs from the expectation; `nil` when nothing does.
    mutating func fault() throws -> String? {
        let before = bench.origin.now
        try exchange()
        guard try goodRequestWorks() else { return "the next request failed" }
        guard bench.origin.settles() else {
            return "an origin connection was left in the middle of a request"
        }
        var heads: [WireRequest] = []
        var complete: [WireRequest] = []
        for log in bench.origin.connections(since: before) {
            if let fault = log.fault { return "the origin got \(fault)" }
            heads += log.heads
            complete += log.requests
        }
        heads.removeAll { $0.target == Self.goodTarget }
        complete.removeAll { $0.target == Self.goodTarget }
        return faultOfOrigin(heads, complete) ?? faultOfClient(complete)
    }

    private var isRejected: Bool { one.expect.action == "reject" }
    private var expected: [HTTPCase.Message] {
        let first = HTTPCase.Message(
            method: "GET",
            target: "/first",
            body_len: 0,
            body_sha256: hash([])
        )
        let messages = (one.expect.messages ?? []).map { message in
            HTTPCase.Message(
                method: message.method,
                target: Self.originForm(message.target),
                body_len: message.body_len,
                body_sha256: message.body_sha256
            )
        }
        return (delivery == .pipelined ? [first] : []) + messages
    }

    /// What an origin gets of a target: RFC 9112 §3.2.1 has no absolute-form there.
    private static func originForm(_ target: String) -> String {
        guard let scheme = target.range(of: "://"), !target.hasPrefix("/") else { return target }
        let rest = target[scheme.upperBound...]
        let path = rest.drop { $0 != "/" && $0 != "?" }
        return path.hasPrefix("/") ? String(path) : "/" + path
    }

    private mutating func exchange() throws {
        let client = try bench.connect()
        do {
            let bytes = delivery == .pipelined ? Self.first + one.bytes : one.bytes
            for piece in delivery.pieces(bytes) { try client.send(piece) }
            // Where the gateway has to end the connection by itself, it is left to.
            if !isRejected { client.finishSending() }
        } catch WireFault.reset {
            // It has ended already; its answer is still to be read.
        }
        do {
            while true {
                let method = answers.count < expected.count ? expected[answers.count].method : "GET"
                if client.inbox.isEmpty { try client.receive() }
                answers.append(try client.readFinalResponse(to: method))
            }
        } catch let fault as WireFault {
            end = client.inbox.isEmpty ? fault : .malformed("an answer was cut off: \(fault)")
        }
    }

    /// Where the case's connection to the origin is kept, the request goes to the origin, too.
    /// Where not, the next case has new connections anyway.
    private func goodRequestWorks() throws -> Bool {
        guard delivery == .pooled else { return try bench.isServing() }
        let client = try bench.connect()
        try client.send("GET \(Self.goodTarget) HTTP/1.1\r\nHost: proxy.test\r\n\r\n")
        let answer = try client.readFinalResponse()
        return answer.status == 200 && answer.text == "ok"
    }

    // MARK: Judging

    private func faultOfOrigin(_ heads: [WireRequest], _ complete: [WireRequest]) -> String? {
        if let marker = one.expect.never_upstream, heads.contains(where: { $0.target == marker }) {
            return "the origin was asked for \(marker)"
        }
        for request in heads {
            if let fault = ForwardedHead.fault(request.head) { return fault }
            for name in one.expect.strip_upstream ?? [] where request.head.has(name) {
                return "\(name) reached the origin"
            }
        }
        if isRejected, one.expect.after_headers == false, heads.count > complete.count {
            return "the origin saw the head of a request that its head gives away"
        }
        let seen = complete.map {
            HTTPCase.Message(
                method: $0.method,
                target: $0.target,
                body_len: $0.body.count,
                body_sha256: hash($0.body)
            )
        }
        let before = delivery == .pipelined ? 1 : 0
        if let most = one.expect.upstream_complete, seen.count > most + before {
            return "\(seen.count) requests reached the origin"
        }
        if mayBeRefused, seen.count < expected.count, seen == Array(expected.prefix(seen.count)) {
            return nil
        }
        guard seen == expected else { return "the origin saw \(seen)" }
        return complete.dropFirst(before).first.flatMap(faultOfFirst)
    }

    /// What the case says of the fields of its first request.
    private func faultOfFirst(_ request: WireRequest) -> String? {
        for (name, values) in one.expect.upstream_fields ?? [:] {
            let seen = request.head.all(name)
            guard seen == values else { return "the origin saw \(seen) as \(name)" }
        }
        let trailers = request.trailers.map(\.name)
        guard let expected = one.expect.upstream_trailers, trailers != expected else { return nil }
        return "the origin saw the trailers \(trailers)"
    }

    /// Whether both forwarding and refusing are right.
    private var mayBeRefused: Bool {
        ["same-view", "either", "wait-or-reject"].contains(one.expect.action)
    }

    private func faultOfClient(_ complete: [WireRequest]) -> String? {
        switch end {
        case .ended, .reset: break
        default: return "the client's connection: \(end.map { "\($0)" } ?? "open")"
        }
        let statuses = answers.map(\.status)
        let served = statuses.prefix(complete.count)
        guard served.count == complete.count, served.allSatisfy({ $0 == 200 }) else {
            return "answered \(statuses) for \(complete.count) requests"
        }
        let rest = Array(statuses.dropFirst(complete.count))
        switch one.expect.action {
        case "accept", "normalise": return rest.isEmpty ? nil : "answered \(statuses)"
        case "reject":
            let allowed = one.expect.status ?? [400]
            return rest.isEmpty || rest.count == 1 && allowed.contains(rest[0])
                ? nil : "answered \(statuses)"
        case "wait":
            return rest.isEmpty || rest == [408] || rest == [400] ? nil : "answered \(rest)"
        default:
            return rest.count <= 1 && rest.allSatisfy { (400..<500).contains($0) }
                ? nil : "answered \(statuses)"
        }
    }
}

private func hash(_ bytes: [UInt8]) -> String {
    Hex.text(SHA256.digest(of: bytes).array)
}
