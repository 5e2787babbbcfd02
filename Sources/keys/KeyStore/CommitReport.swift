package import Telemetry

/// The place of a change in the order in which changes are written. Tickets of one event loop
/// ascend.
package struct CommitTicket: Comparable, Hashable, Sendable {
    let number: UInt64

    package static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

/// Whether a caller waits for a change.
package enum Durability: Hashable, Sendable {
    /// Written with the next ``Committer/kick()``; listeners are notified.
    case awaited
    /// Written soon; listeners may not be notified.
    case behind
}

/// Gets the results of commits; one for each event loop.
package protocol CommitListener: AnyObject, Sendable {
    /// A batch for which a caller waits has ended.
    ///
    /// Called on the writer's queue, in the order of the tickets. Must return at once.
    func commitEnded(_ report: CommitReport)
}

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

extension Committer {
    /// The limits of waiting changes.
    package struct Limits: Sendable {
        /// Changes of counters that are not on disk. With more, `consume` answers `unavailable`.
        ///
        /// Default 262,144: 10 MiB, and some ten seconds without a working disk.
        package var changesMax = 262_144
        /// Enrolments that wait; each may have some kilobytes of receipt. Default 4,096.
        package var enrolmentsMax = 4_096
        /// Renewed receipts that wait; each may have some kilobytes. Default 1,024.
        package var renewalsMax = 1_024
        /// Uses that wait until the journal decides them. Default 8,192: one transaction decides
        /// all waiting uses, and has to end in time.
        package var usesMax = 8_192
        /// Keys that wait to be looked up. Default 8,192.
        package var lookUpsMax = 8_192
        /// Tokens that wait to be spent. Default 8,192.
        package var spendingsMax = 8_192
        /// Maximum write-behind delay, for changes that no request waits for. Default 100 ms; after
        /// 4,096 changes the writer starts earlier. A longer delay makes larger transactions.
        package var behindDelay = Duration.milliseconds(100)
        package var behindCount = 4_096
        /// The time from a failure to the next try; doubled at most four times.
        package var retryDelay = Duration.milliseconds(100)
        /// The most values of failed batches in one transaction.
        package var retriesMax = 16_384
        /// Consecutive failures after which the writer pauses. In a pause, a change is answered at
        /// once like after a failed commit, and the writer does not try it. On a full disk a commit
        /// for each request would only take time from the others. Default 8.
        package var failuresMax = 8
        /// The first pause, which doubles with each further failure, and the longest one. Defaults
        /// 20 ms and 1 s.
        package var pauseMin = Duration.milliseconds(20)
        package var pauseMax = Duration.seconds(1)

        /// The time that a use or look-up waits for its answer; `nil` for the journal's own time.
        package var answerTime: Duration?

        package init() {}

        /// The writer's pause after this number of consecutive failures.
        func pause(after failures: Int) -> Duration {
            guard failures >= failuresMax else { return .zero }
            return min(pauseMin * (1 << min(failures - failuresMax, 16)), pauseMax)
        }
    }
}
