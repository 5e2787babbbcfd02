import DequeModule
import KeyStore

/// Requests of one lane that wait for a commit: those that wait for a ticket, and those of services
/// that store something.
///
/// Tickets are taken in order on a lane, so the first queue is sorted by ticket and by time, the
/// second one by time.
struct CommitQueue {
    struct Waiting {
        let exchange: Exchange
        /// When the wait began, monotonic nanoseconds.
        let since: UInt64
        let ticket: CommitTicket
    }

    /// A request whose service stores something.
    struct Storing {
        let exchange: Exchange
        /// As in ``Waiting``.
        let since: UInt64
    }

    private var waiting: Deque<Waiting> = []
    private var storing: Deque<Storing> = []

    /// When the request that waits longest has begun to, monotonic nanoseconds; `nil` when none
    /// waits.
    var since: UInt64? {
        switch (waiting.first?.since, storing.first?.since) {
        case (let one?, let other?): min(one, other)
        case (let one, let other): one ?? other
        }
    }

    /// Adds a request that waits from `now` on, monotonic nanoseconds.
    mutating func wait(for ticket: CommitTicket, _ exchange: Exchange, now: UInt64) {
        waiting.append(Waiting(exchange: exchange, since: now, ticket: ticket))
    }

    /// Adds a request whose service stores something.
    mutating func wait(_ exchange: Exchange, now: UInt64) {
        storing.append(Storing(exchange: exchange, since: now))
    }

    /// Lets go of the requests at the front that have ended; called when one has its answer. One
    /// that has ended behind another waits for that.
    mutating func letGoOfStored() {
        while let first = storing.first, !first.exchange.isUnderWay { storing.removeFirst() }
    }

    /// Takes the first request whose ticket is at most this one; `nil` when there is none. Its
    /// client may have gone.
    mutating func next(through ticket: CommitTicket) -> Waiting? {
        guard let first = waiting.first, first.ticket <= ticket else { return nil }
        return waiting.removeFirst()
    }

    /// Takes the first request that has waited for its ticket since this moment or longer; `nil`
    /// when there is none. Its client may have gone.
    mutating func next(since moment: UInt64) -> Waiting? {
        guard let first = waiting.first, first.since <= moment else { return nil }
        return waiting.removeFirst()
    }

    /// The same of those whose service stores something. It may have ended.
    mutating func nextStoring(since moment: UInt64) -> Exchange? {
        guard let first = storing.first, first.since <= moment else { return nil }
        return storing.removeFirst().exchange
    }
}
