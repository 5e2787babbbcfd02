import DequeModule
import Store

/// Requests of one lane that wait until their counter is on disk.
///
/// Tickets are taken in order on a lane, so the queue is sorted.
struct CommitQueue {
    private struct Waiting {
        let ticket: CommitTicket
        let exchange: Exchange
        let generation: UInt64
    }

    private var waiting: Deque<Waiting> = []

    var isEmpty: Bool { waiting.isEmpty }

    mutating func wait(for ticket: CommitTicket, _ exchange: Exchange) {
        waiting.append(Waiting(ticket: ticket, exchange: exchange, generation: exchange.generation))
    }

    /// Takes the first request whose ticket is at most this one; `nil` when there is none.
    mutating func next(through ticket: CommitTicket) -> Exchange? {
        while let first = waiting.first, first.ticket <= ticket {
            waiting.removeFirst()
            if first.exchange.isCurrent(first.generation) { return first.exchange }
        }
        return nil
    }
}
