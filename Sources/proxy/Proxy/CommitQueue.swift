import DequeModule
import KeyStore

/// Requests of one lane that wait for a commit.
///
/// Tickets are taken in order on a lane, so the queue is sorted by ticket and by time.
struct CommitQueue {
    struct Waiting {
        let exchange: Exchange
        /// When the wait began, monotonic nanoseconds.
        let since: UInt64
        let ticket: CommitTicket
    }

    private var waiting: Deque<Waiting> = []

    /// When the request that waits longest has begun to, monotonic nanoseconds; `nil` when none
    /// waits.
    var since: UInt64? { waiting.first?.since }

    /// Adds a request that waits from `now` on, monotonic nanoseconds.
    mutating func wait(for ticket: CommitTicket, _ exchange: Exchange, now: UInt64) {
        waiting.append(Waiting(exchange: exchange, since: now, ticket: ticket))
    }

    /// Takes the first request whose ticket is at most this one; `nil` when there is none. Its
    /// client may have gone.
    mutating func next(through ticket: CommitTicket) -> Waiting? {
        guard let first = waiting.first, first.ticket <= ticket else { return nil }
        return waiting.removeFirst()
    }

    /// Takes the first request that has waited since this moment or longer; `nil` when there is
    /// none. Its client may have gone.
    mutating func next(since moment: UInt64) -> Waiting? {
        guard let first = waiting.first, first.since <= moment else { return nil }
        return waiting.removeFirst()
    }
}
