import Expectations
import Testing

@testable import Gateway

/// What becomes of spans that wait for a collector.
@Suite struct SpanQueueTests {
    private func entry(_ text: String, _ count: Int = 1) -> SpanQueue.Entry {
        SpanQueue.Entry(spans: Array(text.utf8), count: count)
    }

    private func spans(_ action: SpanQueue.Action) -> String? {
        guard case .send(let bytes) = action else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `spans wait for others, and go together`() {
        var queue = SpanQueue(max: 100)
        expectEqual(queue.add(entry("a"), isSpare: false), .wait(milliseconds: 1_000))
        expectEqual(queue.add(entry("b,c", 2), isSpare: false), .none)
        expectEqual(spans(queue.timeIsUp()), "a,b,c")
        expectEqual(queue.add(entry("d"), isSpare: false), .none)
        expectEqual(queue.ended(.taken), .wait(milliseconds: 1_000))
        expectEqual(queue.exported, 3)
        expectEqual(spans(queue.timeIsUp()), "d")
        expectEqual(queue.ended(.takenInPart(rejected: 9)), .none)
        expectEqual(queue.exported, 3)
        expectEqual(queue.lost[.refused], 1)
    }

    @Test func `what finds no room is dropped and counted, refused requests first`() {
        var queue = SpanQueue(max: 64)
        for _ in 0..<40 { _ = queue.add(entry("x"), isSpare: true) }
        expectEqual(queue.lost[.queueFull], 8)
        for _ in 0..<40 { _ = queue.add(entry("y"), isSpare: false) }
        expectEqual(queue.lost[.queueFull], 16)
        expectEqual(spans(queue.timeIsUp())?.split(separator: ",").count, 64)
    }

    @Test func `a call has 512 spans at most, and a full batch does not wait`() {
        var queue = SpanQueue(max: 4_096)
        for _ in 0..<400 { _ = queue.add(entry("x,x,x", 3), isSpare: false) }
        expectEqual(spans(queue.timeIsUp())?.split(separator: ",").count, 510)
        expectEqual(spans(queue.ended(.taken))?.split(separator: ",").count, 510)
        expectEqual(queue.ended(.taken), .wait(milliseconds: 1_000))
    }

    @Test func `a failed call is repeated after growing times, five calls in all`() {
        var queue = SpanQueue(max: 100)
        _ = queue.add(entry("a"), isSpare: false)
        expectEqual(spans(queue.timeIsUp()), "a")
        for seconds in [2, 4, 8, 16] {
            let action = queue.ended(.failed(retryAfter: nil))
            expectEqual(action, .wait(milliseconds: seconds * 1_000))
            expectEqual(spans(queue.timeIsUp()), "a")
        }
        expectEqual(queue.ended(.failed(retryAfter: nil)), .none)
        expectEqual(queue.lost[.failed], 1)
        expectEqual(queue.timeIsUp(), .none)
    }

    @Test func `a collector's Retry-After holds, for a minute at most`() {
        var queue = SpanQueue(max: 100)
        _ = queue.add(entry("a"), isSpare: false)
        _ = queue.timeIsUp()
        for (seconds, wait) in [(3, 3), (0, 1), (86_400, 60)] {
            let action = queue.ended(.failed(retryAfter: seconds))
            expectEqual(action, .wait(milliseconds: wait * 1_000))
            _ = queue.timeIsUp()
        }
        expectEqual(queue.ended(.refused), .none)
        expectEqual(queue.lost[.refused], 1)
    }

    @Test(arguments: [
        (200, "", SpanQueue.Outcome.taken), (200, "{}", .taken), (202, "<html>", .taken),
        (200, #"{"partialSuccess":{"rejectedSpans":"7"}}"#, .takenInPart(rejected: 7)),
        (429, "", .failed(retryAfter: 4)), (502, "", .failed(retryAfter: 4)),
        (503, "", .failed(retryAfter: 4)), (504, "", .failed(retryAfter: 4)), (400, "", .refused),
        (401, "", .refused), (500, "", .refused), (302, "", .refused),
    ])
    func `an answer means what OTLP says`(
        status: Int,
        content: String,
        outcome: SpanQueue.Outcome
    ) {
        let read = SpanQueue.Outcome(status: status, retryAfter: 4, content: Array(content.utf8))
        expectEqual(read, outcome)
    }
}
