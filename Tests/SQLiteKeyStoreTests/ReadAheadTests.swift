import AppAttest
import Dispatch
import Expectations
import Foundation
import GRDB
import KeyStore
import TestSupport
import Testing
import Tokens

@testable import SQLiteKeyStore

/// The next process of a gateway reads the store while the one before still writes there.
@Suite struct ReadAheadTests {
    private let folder: TemporaryFolder
    private let issuer = ChallengeIssuer(capacity: 64)
    private let keys = (1...4).map { KeyRecord.sample(UInt8($0)) }

    init() throws { folder = try TemporaryFolder() }

    /// A gateway's table that folds its log of counters as soon as it has an entry.
    private func table(_ records: [KeyRecord]) throws -> KeyTable {
        let journal = try SQLiteKeyJournal(path: folder.database, foldedAt: 1)
        let table = try KeyTable(journal: journal)
        for record in records { try enrol(record, table) }
        return table
    }

    private func enrol(_ record: KeyRecord, _ table: KeyTable) throws {
        let done = DispatchSemaphore(value: 0)
        table.enrol(record) { _ in done.signal() }
        done.wait()
        try table.committer.flush()
    }

    private func use(_ record: KeyRecord, _ counter: UInt32, _ table: KeyTable) -> ConsumeOutcome {
        table.consume(
            CounterUse(
                of: record.keyID,
                counter: SignCounter(rawValue: counter),
                rule: .window(64),
                challenge: nil
            ),
            issuer: issuer,
            now: 0
        )
    }

    private func isReplay(_ outcome: ConsumeOutcome) -> Bool {
        if case .decided(.refused(.replayed)) = outcome { true } else { false }
    }

    private func key(_ record: KeyRecord, _ table: KeyTable) throws -> StoredKey {
        guard case .known(let key) = table.find(record.keyID) else {
            throw StoreContract.Unexpected("the key is not there")
        }
        return key
    }

    /// The table of the next process, which takes over what the other one has lent.
    private func successor(of table: KeyTable, _ ahead: SQLiteKeyReader, _ keys: KeysAhead) throws
        -> KeyTable
    {
        let lease = try #require(try table.stopWriting())
        let journal = try SQLiteKeyJournal(
            path: folder.database,
            lease: StoreLease(lock: dup(lease.lock), calls: dup(lease.calls)),
            ahead: ahead
        )
        defer { table.leaveStore() }
        return try KeyTable(journal: journal, from: .ahead(keys))
    }

    @Test func `no counter that was used behind the reading is free in the next process`() throws {
        let before = try table(keys)
        // Used before anything is read, one of them folded into its row.
        for record in keys.prefix(2) { #expect(use(record, 3, before).isTaken) }
        try before.committer.flush()
        before.beginTrail()
        let ahead = try #require(try SQLiteKeyReader(ahead: folder.database))
        let read = try KeysAhead(ahead)
        // Each of these commits would fold the log otherwise, and leave it empty.
        for counter in UInt32(5)...8 {
            for record in keys.dropFirst() { #expect(use(record, counter, before).isTaken) }
            try before.committer.flush()
        }
        let after = try successor(of: before, ahead, read)
        for counter in UInt32(5)...8 {
            for record in keys.dropFirst() {
                #expect(isReplay(use(record, counter, after)))
            }
        }
        #expect(isReplay(use(keys[0], 3, after)))
        #expect(use(keys[0], 4, after).isTaken)
        for record in keys.dropFirst() {
            try expectEqual(key(record, after).counter.rawValue, 8)
            #expect(use(record, 4, after).isTaken)
        }
        try after.close()
    }

    @Test func `a key that is enrolled, revoked or renewed behind the reading is so afterwards`()
        throws
    {
        let before = try table(Array(keys.dropLast()))
        before.beginTrail()
        let ahead = try #require(try SQLiteKeyReader(ahead: folder.database))
        let read = try KeysAhead(ahead)
        try enrol(keys[3], before)
        let commands = try KeyAdministration(path: folder.database)
        _ = try commands.revoke(keys[0].keyID, ChangeNote(now: 5))
        var state = ReceiptState(createdAt: 2_000_000, expiresAt: nil)
        (state.riskMetric, state.metricAt, state.triedAt) = (7, 2_000_000, 2_000_000)
        state.outcome = .renewed
        let done = DispatchSemaphore(value: 0)
        let change = ReceiptChange(row: 2, keyID: keys[1].keyID, receipt: [7], state: state)
        before.renew(change) { _ in done.signal() }
        try before.committer.flush()
        done.wait()

        let after = try successor(of: before, ahead, read)
        expectEqual(after.count, 4)
        #expect(try key(keys[0], after).isRevoked)
        try expectEqual(key(keys[1], after).risk.metric, 7)
        #expect(try !key(keys[2], after).isRevoked)
        #expect(use(keys[3], 1, after).isTaken)
        expectEqual(after.appID(of: try key(keys[3], after).app), keys[3].appID)
        try after.close()
        // A start of its own finds the same.
        let again = try table([])
        try expectEqual(key(keys[3], again).counter.rawValue, 1)
        try again.close()
    }

    @Test func `only what is new is read while clients wait`() throws {
        let before = try table(keys)
        before.beginTrail()
        let ahead = try #require(try SQLiteKeyReader(ahead: folder.database))
        _ = try KeysAhead(ahead)
        #expect(use(keys[2], 1, before).isTaken)
        try before.committer.flush()
        var rows: [Int64] = []
        _ = try ahead.load(apps: AppNumbers()) { rows += $0.map(\.row) }
        expectEqual(rows, [3])
        _ = try ahead.load(apps: AppNumbers()) { rows += $0.map(\.row) }
        expectEqual(rows, [3])
        // When the upgrade has failed, the log of counters is folded as before.
        before.endTrail()
        #expect(use(keys[2], 2, before).isTaken)
        try before.committer.flush()
        let count = try ahead.database.read { db in try CounterLog.count(db) }
        expectEqual(count, 0)
        try before.close()
    }

    @Test func `a gateway that takes its store back raises the generation that a start reads`()
        throws
    {
        let journal = try SQLiteKeyJournal(path: folder.database)
        let before = try KeyTable(journal: journal)
        try enrol(keys[0], before)
        _ = try before.stopWriting()
        // As the next process does when it opens the store; then it fails.
        _ = try journal.writer.attempt { db in try Generation.advance(db) }
        let opened = try journal.writer.attempt { db in try Generation.current(db) }
        _ = try GenerationFile(database: folder.database, journal.files.record(opened))
        try before.goOn()
        try enrol(keys[1], before)
        let now = try journal.writer.attempt { db in try Generation.current(db) }
        #expect(now.number > opened.number)
        expectEqual(GenerationFile.record(ofDatabase: folder.database)?.generation, now)
        try before.close()
    }

    @Test func `a database that another has replaced is not gone on with`() throws {
        let before = try table(keys)
        let ahead = try #require(try SQLiteKeyReader(ahead: folder.database))
        try before.close()
        try FileManager.default.moveItem(
            atPath: folder.database,
            toPath: folder.database + ".aside"
        )
        try FileManager.default.copyItem(
            atPath: folder.database + ".aside",
            toPath: folder.database
        )
        #expect(throws: StoreProblem.self) { try ahead.checkIdentity() }
    }

    @Test func `what only a writer can open is not read ahead`() throws {
        #expect(try SQLiteKeyReader(ahead: folder.database) == nil)
        try DatabaseQueue(path: folder.database).close()
        #expect(try SQLiteKeyReader(ahead: folder.database) == nil)
    }
}
