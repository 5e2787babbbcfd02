/// What came of requests of one kind.
struct RequestOutcome: Hashable, Sendable {
    let sending: Sending
    /// Of the answer; 0 where none came.
    let status: Int
    /// The reason of a refusal, or why no answer came; empty for none.
    let reason: String
    let isAsExpected: Bool

    init(_ sending: Sending, _ answer: borrowing Answer, isAsExpected: Bool) {
        (self.sending, status, self.isAsExpected) = (sending, answer.status, isAsExpected)
        reason = answer.reason.map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    init(_ sending: Sending, _ failure: ExchangeFailure) {
        (self.sending, status, isAsExpected) = (sending, 0, false)
        reason = failure.rawValue
    }

    /// `401 counter-replayed`, `200`, `response-timeout`.
    var text: String {
        if status == 0 { return reason }
        return reason.isEmpty ? "\(status)" : "\(status) \(reason)"
    }
}

/// How many requests had each outcome.
struct OutcomeCounts: Sendable {
    private var counts: [RequestOutcome: UInt64] = [:]
    /// Requests beyond ``kindsMax``.
    private(set) var unlisted: UInt64 = 0

    /// The most outcomes with a count of their own: the reasons are the peer's words.
    static let kindsMax = 100

    mutating func note(_ outcome: RequestOutcome, count: UInt64 = 1) {
        if counts.count < Self.kindsMax || counts[outcome] != nil {
            counts[outcome, default: 0] += count
        } else {
            unlisted += count
        }
    }

    mutating func add(_ other: OutcomeCounts) {
        for (outcome, count) in other.counts { note(outcome, count: count) }
        unlisted += other.unlisted
    }

    /// In the order of the summary's rows; of a row, the most frequent first.
    var sorted: [(outcome: RequestOutcome, count: UInt64)] {
        counts.map { (outcome: $0.key, count: $0.value) }.sorted { one, other in
            let rows = (one.outcome.sending.rawValue, other.outcome.sending.rawValue)
            if rows.0 != rows.1 { return rows.0 < rows.1 }
            if one.count != other.count { return one.count > other.count }
            return one.outcome.text < other.outcome.text
        }
    }
}
