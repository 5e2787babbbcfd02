package import Telemetry

/// The result of a batch, ticket by ticket.
package struct CommitReport: Equatable, Sendable {
    private enum Decisions: Equatable {
        /// One decision for all: the journal keeps what was decided in memory.
        case same(ConsumeDecision)
        /// One decision for each ticket, in their order.
        case each([ConsumeDecision])
    }

    /// The tickets that have ended with this batch.
    package let tickets: ClosedRange<CommitTicket>
    private let decisions: Decisions

    /// - `decision`: `admitted` when the batch is durable. Otherwise `unassured`: its changes are
    ///   in memory and will be written later.
    init(_ tickets: ClosedRange<CommitTicket>, all decision: ConsumeDecision) {
        self.tickets = tickets
        decisions = .same(decision)
    }

    /// - `uses`: the uses that the journal was to decide, with its decisions.
    /// - `decision`: the decision of the other tickets.
    init(
        _ tickets: ClosedRange<CommitTicket>,
        _ uses: [(ticket: CommitTicket, decision: ConsumeDecision)],
        others decision: ConsumeDecision
    ) {
        let first = tickets.lowerBound.number
        let count = Int(tickets.upperBound.number - first) + 1
        var each = [ConsumeDecision](repeating: decision, count: count)
        for use in uses { each[Int(use.ticket.number - first)] = use.decision }
        self.tickets = tickets
        decisions = .each(each)
    }

    /// The decision about the use with this ticket.
    ///
    /// - `ticket`: one of ``tickets``.
    package func decision(of ticket: CommitTicket) -> ConsumeDecision {
        precondition(tickets.contains(ticket), "CommitReport: a ticket of another batch")
        switch decisions {
        case .same(let decision): return decision
        case .each(let decisions): return decisions[Int(ticket.number - tickets.lowerBound.number)]
        }
    }
}

/// The work and the state of the writer. Totals are since the start.
package struct CommitStatistics: Sendable {
    /// Transactions that reached the disk.
    package var commits: UInt64 = 0
    /// Transactions that failed.
    package var failures: UInt64 = 0
    /// Keys whose counters were written; several changes of one key in a batch are one.
    package var counters: UInt64 = 0
    package var enrolments: UInt64 = 0
    /// Keys that were looked up in the journal, and the number of them that it had.
    package var lookUps: UInt64 = 0
    package var foundLookUps: UInt64 = 0
    /// Uses, look-ups, enrolments and renewals that found no room to wait.
    package var turnedAway: UInt64 = 0
    /// Changes and enrolments in a transaction, failed ones included.
    package var sizes = Histogram()
    /// Nanoseconds of a transaction, failed ones included.
    package var durations = Histogram()
    /// Changes that are not on disk now, those of failed batches included.
    package var depth = 0
    /// Uses and look-ups that wait for the journal's next transaction now.
    package var waiting = 0
    /// Whether the last transaction failed, or values of a failed one are still to be written.
    package var isDegraded = false
    /// Why the last transaction failed; stays after recovery.
    package var lastError: JournalError?
}
