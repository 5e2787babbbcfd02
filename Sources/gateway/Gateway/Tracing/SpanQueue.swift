import Encodings

/// The spans that wait for a collector, and the call with some of them: one at a time.
///
/// A machine without a clock and without sockets. It never makes a request wait: what does not fit
/// is dropped and counted.
struct SpanQueue {
    /// Spans of a call (OpenTelemetry's batch processor has the same).
    static let batchMax = 512
    /// How long spans wait for others, in milliseconds.
    static let gatherMilliseconds = 1_000
    /// Calls for the same spans.
    static let attemptsMax = 5
    /// The longest wait before another call, also where the collector asks for more.
    static let waitMaxSeconds = 60

    /// The spans of one request.
    struct Entry {
        /// Objects of OTLP's JSON, with commas between them.
        let spans: [UInt8]
        let count: Int
    }

    /// What to do next.
    enum Action: Equatable {
        case none
        /// ``timeIsUp()`` after this time.
        case wait(milliseconds: Int)
        /// Call the collector with these spans, then ``ended(_:)``.
        case send([UInt8])
    }

    /// How a call went.
    enum Outcome: Equatable {
        case taken
        /// The collector has taken all but a number of spans.
        case takenInPart(rejected: UInt64)
        /// It may be tried again; the collector may say after how many seconds.
        case failed(retryAfter: Int?)
        /// No other call would go better.
        case refused
    }

    /// Why spans were dropped. The raw value is a label: add, do not rename.
    enum Loss: String, CaseIterable {
        case queueFull = "queue-full"
        case failed
        case refused
    }

    private enum State {
        /// No span waits. Leaves to `gathering`.
        case idle
        /// Spans wait for others. Leaves to `calling`.
        case gathering
        /// Leaves to `idle`, `gathering`, `calling`, `waiting`.
        case calling(Batch)
        /// The last call has failed. Leaves to `calling`.
        case waiting(Batch)
    }

    private struct Batch {
        let content: [UInt8]
        let count: Int
        var attempts = 1
    }

    private var state = State.idle
    private var entries: [Entry] = []
    private var count = 0
    /// The most spans that wait.
    var max: Int
    private(set) var exported: UInt64 = 0
    private(set) var lost = [Loss: UInt64]()

    init(max: Int) { self.max = max }

    /// - isSpare: a refused request that was not chosen to be recorded. Such spans take half of the
    ///   queue at most: anyone can cause refusals.
    mutating func add(_ entry: Entry, isSpare: Bool) -> Action {
        guard count + entry.count <= (isSpare ? max / 2 : max) else {
            lost[.queueFull, default: 0] &+= UInt64(entry.count)
            return .none
        }
        entries.append(entry)
        count += entry.count
        guard case .idle = state else { return .none }
        state = .gathering
        return .wait(milliseconds: Self.gatherMilliseconds)
    }

    /// The time of a wait is over.
    mutating func timeIsUp() -> Action {
        switch state {
        case .idle, .calling: return .none
        case .gathering: return sendNext()
        case .waiting(var batch):
            batch.attempts += 1
            state = .calling(batch)
            return .send(batch.content)
        }
    }

    mutating func ended(_ outcome: Outcome) -> Action {
        guard case .calling(let batch) = state else { return .none }
        switch outcome {
        case .taken: exported &+= UInt64(batch.count)
        case .takenInPart(let rejected):
            let refused = Swift.min(rejected, UInt64(batch.count))
            lost[.refused, default: 0] &+= refused
            exported &+= UInt64(batch.count) - refused
        case .refused: lost[.refused, default: 0] &+= UInt64(batch.count)
        case .failed(let seconds):
            guard batch.attempts < Self.attemptsMax else {
                lost[.failed, default: 0] &+= UInt64(batch.count)
                break
            }
            state = .waiting(batch)
            let wait = seconds ?? 1 << batch.attempts
            return .wait(milliseconds: Swift.min(Swift.max(wait, 1), Self.waitMaxSeconds) * 1_000)
        }
        guard !entries.isEmpty else {
            state = .idle
            return .none
        }
        guard count < Self.batchMax else { return sendNext() }
        state = .gathering
        return .wait(milliseconds: Self.gatherMilliseconds)
    }

    private mutating func sendNext() -> Action {
        var spans: [UInt8] = []
        var taken = 0
        var number = 0
        for entry in entries {
            guard number == 0 || number + entry.count <= Self.batchMax else { break }
            if number > 0 { spans.append(UInt8(ascii: ",")) }
            spans += entry.spans
            number += entry.count
            taken += 1
        }
        entries.removeFirst(taken)
        count -= number
        state = .calling(Batch(content: spans, count: number))
        return .send(spans)
    }
}

extension SpanQueue.Outcome {
    /// By OTLP/HTTP, "Retryable response codes", and its partial success.
    init(status: Int, retryAfter: Int?, content: [UInt8]) {
        switch status {
        case 200...299:
            let pointer = JSONPointer(tokens: ["partialSuccess", "rejectedSpans"])
            let text = pointer.string(in: content.span).map { String(decoding: $0, as: UTF8.self) }
            let rejected = text.flatMap { UInt64($0) } ?? 0
            self = rejected > 0 ? .takenInPart(rejected: rejected) : .taken
        case 429, 502, 503, 504: self = .failed(retryAfter: retryAfter)
        default: self = .refused
        }
    }
}
