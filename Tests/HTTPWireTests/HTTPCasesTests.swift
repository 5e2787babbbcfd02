import Expectations
import FuzzTargets
import HTTPWire
import Services
import TestSupport
import Testing

/// The cases that were given, as far as bytes alone can decide them; the HTTP scenarios play all of
/// them through the proxy.
struct HTTPCasesTests {
    @Test(arguments: HTTPCase.given.filter { $0.direction == "request" })
    func `a request case comes out as expected, however it is cut`(_ one: HTTPCase) {
        let bytes = one.bytes
        for pieces in Splits.all(bytes, cutsBelow: 160) {
            let replay = RequestStream(pieces)
            let fault = Self.fault(one, replay)
            if HTTPCase.divergences[one.id] != nil {
                #expect(fault != nil, "\(one.id) passes now; take it off the list")
            } else {
                expectEqual(fault, nil, "\(one.id), \(pieces.count) pieces")
            }
            if let marker = one.expect.never_upstream {
                #expect(!replay.messages.contains { $0.target == Array(marker.utf8) })
            }
        }
    }

    @Test(arguments: HTTPCase.given.filter { $0.direction == "response" })
    func `a response case comes out as expected, however it is cut`(_ one: HTTPCase) {
        let bytes = one.bytes
        let method: Method =
            switch one.request_method {
            case "HEAD": .head
            case "POST": .post
            default: .get
            }
        for pieces in Splits.all(bytes, cutsBelow: 160) {
            let fault = Self.fault(one, ResponseStream(pieces, to: method))
            if HTTPCase.divergences[one.id] != nil {
                #expect(fault != nil, "\(one.id) passes now; take it off the list")
            } else {
                expectEqual(fault, nil, "\(one.id), \(pieces.count) pieces")
            }
        }
    }

    /// What differs from the expectation; `nil` when nothing does.
    private static func fault(_ one: HTTPCase, _ replay: RequestStream) -> String? {
        let expected = one.expect.messages ?? []
        let seen = replay.messages.map {
            HTTPCase.Message(
                method: String(decoding: $0.method, as: UTF8.self),
                target: String(decoding: $0.target, as: UTF8.self),
                body_len: $0.body.count,
                body_sha256: sha256($0.body)
            )
        }
        var isRejected = false
        if case .rejected(let reason) = replay.end {
            isRejected = true
            let answered = LocalOutcome.malformed(reason).status
            guard (one.expect.status ?? [400]).contains(answered) else {
                return "answered \(answered)"
            }
        }
        let isWaiting = replay.end == .insideHead || replay.end == .insideBody
        switch one.expect.action {
        case "accept", "normalise":
            if isRejected || isWaiting { return "ended \(replay.end)" }
            return seen == expected ? nil : "saw \(seen)"
        case "same-view", "either":
            if isRejected { return nil }
            return seen == expected ? nil : "saw \(seen)"
        case "reject":
            if !isRejected { return "ended \(replay.end)" }
            return seen == expected ? nil : "saw \(seen)"
        case "wait":
            return isWaiting && seen.isEmpty ? nil : "ended \(replay.end)"
        case "wait-or-reject":
            return isWaiting || isRejected ? nil : "ended \(replay.end)"
        case "timed":
            return timed(one.id, replay)
        default:
            return "unknown action \(one.expect.action)"
        }
    }

    /// The slow cases without their delays.
    private static func timed(_ id: String, _ replay: RequestStream) -> String? {
        let isRight: Bool
        switch id {
        case "own-slow-00", "own-slow-04", "own-slow-05", "own-slow-07", "own-slow-08":
            isRight = replay.messages.count == 1 && replay.end == .idle
        case "own-slow-01", "own-slow-02":
            isRight = replay.messages.isEmpty && replay.end == .insideHead
        case "own-slow-03":
            isRight = replay.messages.isEmpty && replay.end == .insideBody
        case "own-slow-06":
            isRight = replay.messages.isEmpty && replay.end == .rejected(.chunkExtensionSyntax)
        default:
            return "unknown timed case"
        }
        return isRight ? nil : "ended \(replay.end)"
    }

    private static func fault(_ one: HTTPCase, _ replay: ResponseStream) -> String? {
        let isRight: Bool
        switch one.expect.action {
        case "accept", "normalise":
            isRight = replay.end == .complete && replay.leftover == 0
        case "accept-close":
            isRight = replay.end == .complete && (replay.leftover > 0 || !replay.isPersistent)
        case "reject":
            if case .rejected = replay.end { isRight = true } else { isRight = false }
        case "abort":
            if case .aborted = replay.end { isRight = true } else { isRight = false }
        case "reject-or-normalise", "review":
            if case .aborted = replay.end { isRight = false } else { isRight = true }
        case "limit":
            // The bound is the proxy's; here each one is told.
            isRight = replay.interim == 1000
        case "close-idle":
            // Whether a response was asked for is the pool's to know.
            isRight = replay.end == .complete
        default:
            return "unknown action \(one.expect.action)"
        }
        return isRight ? nil : "ended \(replay.end), \(replay.leftover) left over"
    }
}
