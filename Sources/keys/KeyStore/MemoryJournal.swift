package import DeviceKey
internal import Signatures
internal import Synchronization

/// A journal that lives as long as the process, for tests and for a gateway without apps.
package final class MemoryJournal: KeyJournal {
    private struct State {
        var apps = AppNumbers()
        var records: [KeyRecord] = []
        /// By row, which is one more than the place in `records`.
        var revisions: [Int64] = []
        var rows: [KeyID: Int64] = [:]
        var revision: Int64 = 0
        var spent: Set<SHA256Digest> = []
        let secret = ErasureSecret.drawn()

        /// The row of a key, also where only its mark is left.
        func row(of keyID: KeyID) -> Int64? { rows[keyID] ?? rows[secret.mark(of: keyID)] }
    }

    private let state = Mutex(State())
    private let follower = Mutex<(@Sendable () -> JournalError?)?>(nil)

    package init() {}

    package var decides: DecisionMoment { .inMemory }

    package func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        state.withLock { state in
            state.apps = apps
            body(state.records.indices.map { Self.row(Int64($0) + 1, state) })
            return JournalRevision(state.revision)
        }
    }

    package func enrolmentSecret() throws(JournalError) -> [UInt8]? { nil }

    package func commit(_ batch: JournalBatch) throws(JournalError) -> CommitAnswer {
        state.withLock { state in
            for change in batch.changes where change.row >= 1 {
                let index = Int(change.row) - 1
                guard index < state.records.count else { continue }
                if case .erased = state.records[index].status { continue }
                state.records[index].counters.merge(change.counters)
                state.records[index].lastUsedAt =
                    max(state.records[index].lastUsedAt ?? .min, change.usedAt)
            }
            for change in batch.receipts { Self.apply(change, &state) }
            let rows = batch.enrolments.map { record in
                if let row = state.row(of: record.keyID) {
                    let key = Self.row(row, state).asked(by: record.keyID)
                    return EnrolledRow(key: key, isNew: false)
                }
                let row = Self.add(record, revision: 0, &state)
                return EnrolledRow(key: Self.row(row, state), isNew: true)
            }
            let tokens = batch.tokens.map { state.spent.insert($0.digest).inserted }
            return CommitAnswer(enrolments: rows, tokens: tokens)
        }
    }

    package func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        state.withLock { state in
            let changed = state.revisions.indices.filter {
                state.revisions[$0] > revision.number
            }
            body(changed.map { Self.row(Int64($0) + 1, state) })
            return JournalRevision(state.revision)
        }
    }

    package func follow(_ body: @escaping @Sendable () -> JournalError?) {
        follower.withLock { $0 = body }
    }

    package func settle() throws(JournalError) {}

    package func close() {}

    // MARK: As another process

    /// Revokes a key; false when there is none.
    package func revoke(_ keyID: KeyID, at second: Int64) -> Bool {
        set(.revoked(at: second), of: keyID)
    }

    /// Revokes, restores or deletes a key; false when there is none.
    package func set(_ status: KeyRecord.Status, of keyID: KeyID) -> Bool {
        let isKnown = state.withLock { state in
            guard let row = state.rows[keyID] else { return false }
            state.revision += 1
            state.records[Int(row) - 1].status = status
            state.revisions[Int(row) - 1] = state.revision
            return true
        }
        announce()
        return isKnown
    }

    /// Erases all deleted keys.
    package func erase() {
        state.withLock { state in
            for index in state.records.indices {
                guard case .deleted(let second) = state.records[index].status else { continue }
                let mark = state.secret.mark(of: state.records[index].keyID)
                state.rows[state.records[index].keyID] = nil
                state.rows[mark] = Int64(index) + 1
                state.records[index] = .erased(mark, under: state.secret, at: second)
            }
        }
    }

    /// Adds a key, or raises its counter.
    package func add(_ record: KeyRecord) {
        state.withLock { state in
            state.revision += 1
            if let row = state.rows[record.keyID] {
                state.records[Int(row) - 1].counters.merge(record.counters)
                state.records[Int(row) - 1].context =
                    state.records[Int(row) - 1].context ?? record.context
                state.revisions[Int(row) - 1] = state.revision
            } else {
                _ = Self.add(record, revision: state.revision, &state)
            }
        }
        announce()
    }

    private func announce() { _ = follower.withLock { $0 }?() }

    /// The record stored under a key id.
    package func record(_ keyID: KeyID) -> KeyRecord? {
        state.withLock { state in
            state.row(of: keyID).map { state.records[Int($0) - 1] }
        }
    }

    /// The row of a key as a gateway reads it.
    package func row(_ keyID: KeyID) -> KeyRow? {
        state.withLock { state in state.rows[keyID].map { Self.row($0, state) } }
    }

    private static func add(_ record: KeyRecord, revision: Int64, _ state: inout State) -> Int64 {
        state.records.append(record)
        state.revisions.append(revision)
        let row = Int64(state.records.count)
        state.rows[record.keyID] = row
        return row
    }

    /// A receipt replaces only an older one, with its outcome. Another outcome replaces only an
    /// earlier one.
    private static func apply(_ change: ReceiptChange, _ state: inout State) {
        let index = Int(change.row) - 1
        guard state.records.indices.contains(index), state.records[index].receipt != nil else {
            return
        }
        var record = state.records[index]
        let before = record.receiptState
        if let receipt = change.receipt {
            guard before.createdAt ?? .min < change.state.createdAt ?? .min else { return }
            record.receipt = receipt
            record.receiptState = change.state
        } else {
            let (last, tried) = (before.triedAt ?? .min, change.state.triedAt ?? .min)
            guard last <= tried || last - ReceiptChange.disorderMax > tried else { return }
            record.receiptState.triedAt = change.state.triedAt
            record.receiptState.outcome = change.state.outcome
            record.receiptState.dueAt = change.state.dueAt
        }
        record.receiptState.isAsked = false
        state.records[index] = record
    }

    private static func row(_ row: Int64, _ state: State) -> KeyRow {
        let record = state.records[Int(row) - 1]
        var erasure: ErasureSecret?
        if case .erased(_, let secret) = record.status { erasure = secret }
        return KeyRow(
            row: row,
            keyID: record.keyID,
            platform: record.platform,
            publicKey: record.publicKey,
            app: state.apps.number(of: record.appID),
            environment: record.environment,
            counters: record.counters,
            standing: record.status.standing,
            context: record.context,
            risk: record.risk,
            erasure: erasure
        )
    }
}
