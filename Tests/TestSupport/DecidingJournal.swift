package import AppAttest
import Cryptography
package import KeyStore
import Synchronization
import Tokens

/// A store in memory that several gateways may share, and that decides when it commits: what a
/// database on the network does, without the network.
///
/// Each gateway has a ``FaultyJournal`` around it, for delays and failures. Only the gateway that
/// came last hears of changes by others at once.
package final class DecidingJournal: KeyJournal {
    private struct State {
        var spent: Set<ChallengeSerial> = []
        var answers: [KeyID: UseAnswer] = [:]
    }

    /// What is stored. Touched under `state` where it is read and then written.
    private let stored = MemoryJournal()
    private let secret = RandomBytes.make(count: 32)
    private let state = Mutex(State())

    package init() {}

    package var decides: DecisionMoment { .atCommit }

    package func enrolmentSecret() throws(JournalError) -> [UInt8]? { secret }

    /// Answers so to every use of a key from now on, and uses nothing; `nil` for no more.
    package func answer(_ answer: UseAnswer?, for keyID: KeyID) {
        state.withLock { $0.answers[keyID] = answer }
    }

    package func commit(_ batch: JournalBatch) throws(JournalError) -> CommitAnswer {
        // One statement at a time, and each as a whole.
        try state.withLock { (state) throws(JournalError) in
            var answer = try stored.commit(
                JournalBatch(
                    changes: batch.changes,
                    receipts: batch.receipts,
                    tokens: batch.tokens
                )
            )
            for (place, record) in batch.enrolments.enumerated() {
                let challenge = batch.challenge(at: place)
                if let challenge, stored.record(record.keyID) == nil,
                    !state.spent.insert(challenge).inserted
                {
                    answer.enrolments.append(nil)
                    continue
                }
                let batch = JournalBatch(enrolments: [record])
                answer.enrolments += try stored.commit(batch).enrolments
            }
            for use in batch.uses { answer.uses.append(try decide(use, &state)) }
            answer.found = batch.lookUps.compactMap(stored.row)
            return answer
        }
    }

    private func decide(
        _ use: CounterAdvance,
        _ state: inout State
    ) throws(JournalError) -> UseAnswer {
        if let answer = state.answers[use.keyID] { return answer }
        guard let record = stored.record(use.keyID) else { return .refused(.unknown) }
        switch record.status {
        case .active: break
        case .revoked: return .refused(.revoked)
        case .deleted, .erased: return .refused(.unknown)
        }
        var counters = record.counters
        let isFree = use.counter.map { counters.admits($0, use.rule) } ?? (use.challenge != nil)
        guard isFree else { return .refused(.replayed) }
        if let challenge = use.challenge, !state.spent.insert(challenge).inserted {
            return .refused(.challengeSpent)
        }
        if let counter = use.counter { counters.use(counter) }
        let change = CounterChange(row: use.row, counters: counters, usedAt: use.usedAt)
        _ = try stored.commit(JournalBatch(changes: [change]))
        return .used
    }

    package func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        try stored.load(apps: apps, into: body)
    }

    package func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        try stored.changes(since: revision, into: body)
    }

    package func follow(_ body: @escaping @Sendable () -> JournalError?) { stored.follow(body) }

    package func settle() throws(JournalError) {}

    package func close() {}

    // MARK: As another process

    /// Revokes a key; false when there is none. Gateways are told of it.
    package func revoke(_ keyID: KeyID, at second: Int64) -> Bool {
        stored.revoke(keyID, at: second)
    }

    /// Revokes, restores or deletes a key; false when there is none. Gateways are told of it.
    package func set(_ status: KeyRecord.Status, of keyID: KeyID) -> Bool {
        stored.set(status, of: keyID)
    }

    /// Erases the deleted keys.
    package func erase() { stored.erase() }

    /// Adds a key, or raises its counter. Gateways are told of it.
    package func add(_ record: KeyRecord) { stored.add(record) }

    /// What is stored under a key id.
    package func record(_ keyID: KeyID) -> KeyRecord? { stored.record(keyID) }
}
