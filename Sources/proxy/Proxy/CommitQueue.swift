import DequeModule
import KeyStore

/// Requests of one lane that wait for a commit.
///
/// Tickets are taken in order on a lane, so the queue is sorted.
struct CommitQueue {
    struct Waiting {
        let exchange: Exchange
        /// When the wait began, monotonic nanoseconds.
        let since: UInt64
        let ticket: CommitTicket
    }

    private var waiting: Deque<Waiting> = []

    var isEmpty: Bool { waiting.isEmpty }

    /// Adds a request that waits from `now` on, monotonic nanoseconds.
    mutating func wait(for ticket: CommitTicket, _ exchange: Exchange, now: UInt64) {
        waiting.append(Waiting(exchange: exchange, since: now, ticket: ticket))
    }

    /// Takes the first request whose ticket is at most this one; `nil` when there is none.
    mutating func next(through ticket: CommitTicket) -> Waiting? {
        while let first = waiting.first, first.ticket <= ticket {
            waiting.removeFirst()
            if first.exchange.isUnderWay { return first }
        }
        return nil
    }
}
