package import AppAttest
package import Dispatch
package import KeyStore
import Synchronization

/// A journal that fails on demand, and that can be made to stand still.
package final class FaultyJournal: KeyJournal {
    /// When a commit fails.
    package enum Fault: Sendable {
        /// Before anything is written.
        case before(JournalError)
        /// After everything is durable, so that the writer is told wrong.
        case after(JournalError)
    }

    private struct State {
        var fault: Fault?
        var useFaults: [KeyID: JournalError] = [:]
        var changesFault: JournalError?
        var follower: (@Sendable () -> JournalError?)?
        var batches: [JournalBatch] = []
        var gate: (entered: DispatchSemaphore, open: DispatchSemaphore)?
        var answerGate: (entered: DispatchSemaphore, open: DispatchSemaphore)?
    }

    private let inner: any KeyJournal
    private let state = Mutex(State())

    package let keysMax: Int?

    /// - keysMax: how many keys the table holds, where that is not the journal's own number.
    package init(_ inner: any KeyJournal, keysMax: Int? = nil) {
        self.inner = inner
        self.keysMax = keysMax ?? inner.keysMax
    }

    package var decides: DecisionMoment { inner.decides }

    /// How commits fail from now on; `nil` for not at all.
    package func fail(_ fault: Fault?) { state.withLock { $0.fault = fault } }

    /// Whatever else it holds, a batch fails to decide the uses of this key, which it leaves alone.
    package func failUses(of keyID: KeyID, _ error: JournalError) {
        state.withLock { $0.useFaults[keyID] = error }
    }

    /// How reading changes fails from now on; it is tried at once.
    package func failChanges(_ error: JournalError?) {
        let follower = state.withLock { state in
            state.changesFault = error
            return state.follower
        }
        _ = follower?()
    }

    /// The batches that came, failed ones included.
    package var batches: [JournalBatch] { state.withLock { $0.batches } }

    /// Holds up the next commit; `entered` tells when it has come, `open` lets it go on.
    package func holdUp() -> (entered: DispatchSemaphore, open: DispatchSemaphore) {
        let gate = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        state.withLock { $0.gate = gate }
        return gate
    }

    /// Holds up the answer of the next commit, which is durable when `entered` tells.
    package func holdUpAnswer() -> (entered: DispatchSemaphore, open: DispatchSemaphore) {
        let gate = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        state.withLock { $0.answerGate = gate }
        return gate
    }

    package func follow(_ body: @escaping @Sendable () -> JournalError?) {
        state.withLock { $0.follower = body }
        inner.follow(body)
    }

    package func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        try inner.load(apps: apps, into: body)
    }

    package func enrolmentSecret() throws(JournalError) -> [UInt8]? {
        try inner.enrolmentSecret()
    }

    package func commit(_ batch: JournalBatch) throws(JournalError) -> CommitAnswer {
        let (fault, useFaults, gate, answerGate) = state.withLock { state in
            state.batches.append(batch)
            let (gate, answerGate) = (state.gate, state.answerGate)
            (state.gate, state.answerGate) = (nil, nil)
            return (state.fault, state.useFaults, gate, answerGate)
        }
        if let gate {
            gate.entered.signal()
            gate.open.wait()
        }
        if case .before(let error) = fault { throw error }
        var asked = batch
        asked.uses.removeAll { useFaults[$0.keyID] != nil }
        var answer = try inner.commit(asked)
        for (place, use) in batch.uses.enumerated() {
            guard let error = useFaults[use.keyID] else { continue }
            answer.uses.insert(.failed(error), at: place)
        }
        if let answerGate {
            answerGate.entered.signal()
            answerGate.open.wait()
        }
        if case .after(let error) = fault { throw error }
        return answer
    }

    package func settle() throws(JournalError) { try inner.settle() }

    package func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        if let error = state.withLock({ $0.changesFault }) { throw error }
        return try inner.changes(since: revision, into: body)
    }

    package func receiptStore() throws(JournalError) -> (any ReceiptStore)? {
        try inner.receiptStore()
    }

    package func close() { inner.close() }
}

/// Keeps what an event loop is told of commits.
package final class TicketLog: CommitListener {
    private let log = Mutex<[CommitReport]>([])

    package init() {}

    /// In the order in which they came.
    package var reports: [CommitReport] { log.withLock { $0 } }

    /// What was said of a ticket; `nil` when nothing was.
    package func decision(of ticket: CommitTicket) -> ConsumeDecision? {
        reports.first { $0.tickets.contains(ticket) }?.decision(of: ticket)
    }

    package func commitEnded(_ report: CommitReport) { log.withLock { $0.append(report) } }
}
