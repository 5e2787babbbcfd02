import AppAttest
import Cryptography
import Expectations
import Foundation
import GRDB
import KeyStore
import TestSupport
import Testing
import Tokens

@testable import SQLiteKeyStore

/// Copies of a store, and what holds when one is put back.
@Suite struct StoreBackupTests {
    private let folder: TemporaryFolder
    private let issuer = ChallengeIssuer(capacity: 1_024, epoch: 1)
    private let key = KeyRecord.sample(1)
    private let enrolled: Int64 = 1_700_000_000
    private let restored: Int64 = 1_700_000_500

    init() throws { folder = try TemporaryFolder() }

    private var copy: String { folder.path + "/backup.db" }

    private func table(age: StoreAge.Demand = .newest) throws -> KeyTable {
        try KeyTable(journal: try SQLiteKeyJournal(path: folder.database, age: age))
    }

    private func challenge() throws -> ChallengeSerial {
        let text = issuer.issue(.assertion, now: 0)
        guard case .valid(let serial) = issuer.examine(text.span, purpose: .assertion, now: 0)
        else { throw JournalError(.unusable, "a fresh challenge is not valid") }
        return serial
    }

    private func use(
        _ table: KeyTable,
        _ counter: UInt32,
        _ challenge: ChallengeSerial? = nil,
        of keyID: KeyID? = nil,
        rule: StoreCounterRule = .strict,
        at second: Int64
    ) -> ConsumeDecision? {
        let outcome = table.consume(
            CounterUse(
                of: keyID ?? key.keyID,
                counter: SignCounter(rawValue: counter),
                rule: rule,
                challenge: challenge
            ),
            issuer: issuer,
            now: second,
            durability: .behind
        )
        if case .decided(let decision) = outcome { return decision }
        return nil
    }

    private func enrol(_ record: KeyRecord, _ table: KeyTable) throws {
        table.enrol(record) { _ in }
        try table.committer.flush()
    }

    private func spend(_ number: UInt8, _ table: KeyTable) throws -> SpendOutcome? {
        let box = Box<SpendOutcome>()
        let token = SpentToken(SHA256.digest(of: [number]), end: 4_000_000_000)
        table.spend(token) { outcome in box.set(outcome) }
        try table.committer.flush()
        return box.value
    }

    private func restore() throws(StoreProblem) -> StoreRestore.Report {
        let note = ChangeNote(now: restored, by: "test")
        return try StoreRestore(of: copy, toStore: folder.database, note).run()
    }

    private func removeStore() throws {
        for suffix in ["", "-wal", "-shm"] {
            let file = folder.database + suffix
            if StoreFile.exists(file) { try FileManager.default.removeItem(atPath: file) }
        }
    }

    private func texts(_ role: StoreExamination.Role, _ path: String) -> [String] {
        StoreExamination(of: path, as: role).findings.map { "\($0.weight.rawValue): \($0.text)" }
    }

    @Test func `a backup beside a gateway has what was admitted before, for its owner alone`()
        throws
    {
        let table = try table()
        try enrol(key, table)
        // Written behind: the gateway is asked to write it.
        expectEqual(use(table, 7, at: enrolled + 1), .admitted)
        let report = try StoreBackup.make(ofStore: folder.database, to: copy)
        expectEqual(report.keys, 1)
        #expect(report.bytes > 0)
        try expectEqual(TemporaryFolder.mode(copy), 0o600)
        let stored = try KeyAdministration(reading: copy).record(key.keyID)
        expectEqual(stored?.counters.highest, SignCounter(rawValue: 7))
        #expect(StoreExamination(of: copy, as: .copy).isGood)
        let bytes = try Data(contentsOf: URL(filePath: copy))
        #expect(throws: StoreProblem(.occupied, at: copy, "")) {
            do throws(StoreProblem) {
                _ = try StoreBackup.make(ofStore: folder.database, to: copy)
            } catch {
                throw StoreProblem(error.reason, at: error.path, "")
            }
        }
        try expectEqual(Data(contentsOf: URL(filePath: copy)), bytes)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!names.contains { $0.hasSuffix(".part") })
        try table.close()
    }

    @Test func `a copy of the file without its log is said to be none`() throws {
        try table().close()
        let table = try table()
        try enrol(key, table)
        let url = URL(filePath: copy)
        let whole = try Data(contentsOf: URL(filePath: folder.database))
        // The log has all but the first page, or all but what was written last.
        for (bytes, word) in [(whole.prefix(4_096), "problem: "), (whole, "warning: a copy")] {
            try bytes.write(to: url)
            let texts = texts(.copy, copy)
            #expect(
                texts.contains {
                    $0.hasPrefix(word) && $0.contains("without its log") && $0.contains("backup")
                },
                "\(texts)"
            )
            #expect(!texts.contains { $0.contains("start the gateway once") })
            for suffix in ["", "-wal", "-shm"] { unlink(copy + suffix) }
        }
        try table.close()
    }

    @Test func `a restore goes not over a running gateway, nor takes what is no backup`() throws {
        let table = try table()
        try enrol(key, table)
        _ = try StoreBackup.make(ofStore: folder.database, to: copy)
        func reason() -> StoreProblem.Reason? {
            do throws(StoreProblem) {
                _ = try restore()
                return nil
            } catch {
                return error.reason
            }
        }
        expectEqual(reason(), .locked)
        try table.close()
        let before = try Data(contentsOf: URL(filePath: folder.database))
        try Data("no database, but long enough to be taken for one".utf8)
            .write(to: URL(filePath: copy))
        expectEqual(reason(), .damaged)
        try FileManager.default.removeItem(atPath: copy)
        expectEqual(reason(), .missing)
        try expectEqual(Data(contentsOf: URL(filePath: folder.database)), before)
        try expectEqual(self.table().count, 1)
    }

    @Test func `a restore merges what the present database knows, and keeps that file`() throws {
        let (second, third) = (KeyRecord.sample(2), KeyRecord.sample(3))
        var table = try table()
        for record in [key, second] { try enrol(record, table) }
        expectEqual(use(table, 5, at: enrolled + 1), .admitted)
        _ = try StoreBackup.make(ofStore: folder.database, to: copy)
        expectEqual(use(table, 9, at: enrolled + 2), .admitted)
        try enrol(third, table)
        try table.close()
        let keys = try KeyAdministration(path: folder.database)
        let note = ChangeNote(now: enrolled + 3, by: "test")
        try expectEqual(keys.revoke(third.keyID, note), .revoked)
        try expectEqual(keys.delete(second.keyID, note), .deleted)
        try keys.close()

        let report = try restore()
        guard case .merged = report.present else {
            Issue.record("\(report)")
            return
        }
        expectEqual(report.keys, 2)
        let kept = try #require(report.kept)
        expectEqual(kept, folder.database + ".before-20231114T222140Z")
        #expect(try KeyAdministration(reading: kept).record(third.keyID) != nil)
        // It is the newest, and needs no option.
        table = try self.table()
        expectEqual(use(table, 9, at: restored), .refused(.replayed))
        expectEqual(use(table, 10, at: restored), .admitted)
        expectEqual(use(table, 1, of: third.keyID, at: restored), .refused(.revoked))
        expectEqual(use(table, 1, of: second.keyID, at: restored), .refused(.unknown))
        try table.close()
        let history = try KeyAdministration(reading: folder.database).changes(of: nil, limit: 9)
        expectEqual(history.map(\.action), [.storeRestored, .deleted, .revoked])
    }

    @Test func `a token that was spent behind a backup is not fresh in its restore`() throws {
        var table = try table()
        try enrol(key, table)
        try expectEqual(spend(1, table), .fresh)
        _ = try StoreBackup.make(ofStore: folder.database, to: copy)
        try expectEqual(spend(2, table), .fresh)
        try table.close()
        let report = try restore()
        guard case .merged = report.present else {
            Issue.record("\(report)")
            return
        }
        table = try self.table()
        try expectEqual(spend(1, table), .spent)
        try expectEqual(spend(2, table), .spent)
        try expectEqual(spend(3, table), .fresh)
        try table.close()
    }

    @Test func `a receipt that was renewed behind a backup is there after its restore`() throws {
        let table = try table()
        for record in [key, KeyRecord.sample(2)] { try enrol(record, table) }
        _ = try StoreBackup.make(ofStore: folder.database, to: copy)
        var state = ReceiptState(createdAt: 2_000_000, expiresAt: nil)
        (state.riskMetric, state.metricAt, state.triedAt) = (7, 2_000_000, 2_000_000)
        state.outcome = .renewed
        let renewed = ReceiptChange(row: 1, keyID: key.keyID, receipt: [7], state: state)
        table.renew(renewed) { _ in }
        var tried = ReceiptState()
        (tried.triedAt, tried.dueAt) = (3_000_000, 4_000_000)
        tried.outcome = .rejected
        let second = KeyRecord.sample(2)
        table.renew(ReceiptChange(row: 2, keyID: second.keyID, receipt: nil, state: tried)) { _ in }
        try table.committer.flush()
        try table.close()
        _ = try restore()
        let keys = try KeyAdministration(reading: folder.database)
        let first = try #require(try keys.record(key.keyID))
        expectEqual(first.receipt, [7])
        expectEqual(first.receiptState, state)
        let other = try #require(try keys.record(second.keyID))
        expectEqual(other.receipt, second.receipt)
        expectEqual(other.receiptState, tried)
    }

    /// How an older copy comes to be the store.
    enum Way: String, CaseIterable, Sendable { case restored, accepted }

    @Test(arguments: Way.allCases)
    func `what was admitted behind a copy is not admitted again, and a challenge heals the key`(
        way: Way
    ) throws {
        var table = try table()
        try enrol(key, table)
        expectEqual(use(table, 5, at: enrolled + 1), .admitted)
        _ = try StoreBackup.make(ofStore: folder.database, to: copy)
        expectEqual(use(table, 8, at: enrolled + 2), .admitted)
        try table.close()
        try removeStore()
        switch way {
        case .restored:
            let report = try restore()
            guard case .lost = report.present else {
                Issue.record("\(report)")
                return
            }
            table = try self.table()
        case .accepted:
            try FileManager.default.moveItem(atPath: copy, toPath: folder.database)
            table = try self.table(age: .any)
        }
        // Further than any clock of this test, so that it does not matter when it runs.
        let late = Int64.max / 2
        let window = StoreCounterRule.window(64)
        expectEqual(use(table, 8, at: late), .refused(.unanchored))
        expectEqual(use(table, 9, rule: window, at: late), .refused(.unanchored))
        expectEqual(use(table, 5, try challenge(), at: late), .refused(.replayed))
        let peeked = table.peek(
            CounterUse(
                of: key.keyID,
                counter: SignCounter(rawValue: 8),
                rule: .strict,
                challenge: nil
            ),
            issuer: issuer
        )
        expectEqual(peeked, .refused(.unanchored))
        expectEqual(use(table, 12, try challenge(), at: late), .admitted)
        for counter in [8, 9, 11] as [UInt32] {
            expectEqual(use(table, counter, rule: window, at: late), .refused(.replayed))
        }
        expectEqual(use(table, 13, at: late), .admitted)
        try table.close()
        // Also behind the next start.
        table = try self.table()
        expectEqual(use(table, 11, rule: window, at: late), .refused(.replayed))
        expectEqual(use(table, 14, at: late), .admitted)
        try table.close()
    }

    @Test func `a key that was enrolled behind a copy was put back needs no challenge`() throws {
        var table = try table()
        try enrol(key, table)
        try table.close()
        let file = folder.database + GenerationFile.suffix
        try FileManager.default.removeItem(atPath: file)
        table = try self.table(age: .any)
        var late = KeyRecord.sample(2)
        late.enrolledAt = Int64(Date.now.timeIntervalSince1970) + 10
        try enrol(late, table)
        expectEqual(use(table, 1, of: late.keyID, at: late.enrolledAt ?? 0), .admitted)
        expectEqual(use(table, 1, at: late.enrolledAt ?? 0), .refused(.unanchored))
        try table.close()
        let found = texts(.store, folder.database)
        #expect(
            found.contains { $0.hasPrefix("warning: keys with the counters of an older copy: 1;") }
        )
    }

    @Test func `a key with the counters of an older copy is copied after its next challenge`()
        throws
    {
        var table = try table()
        try enrol(key, table)
        try table.close()
        let file = folder.database + GenerationFile.suffix
        try FileManager.default.removeItem(atPath: file)
        table = try self.table(age: .any)
        let other = try TemporaryFolder()
        let target = try KeyAdministration(path: other.database, creates: true)
        func report() throws -> CopyReport {
            try KeyAdministration(reading: folder.database).copy(to: .store(target))
        }
        let first = try report()
        expectEqual(first.differing.map(\.keyID), [key.keyID])
        try expectEqual(target.count(), 0)
        // Further than any clock of this test, so that it does not matter when it runs.
        expectEqual(use(table, 12, try challenge(), at: Int64.max / 2), .admitted)
        try table.committer.flush()
        let second = try report()
        #expect(second.inserted == 1 && second.differingCount == 0)
        let stored = try target.record(key.keyID)
        expectEqual(stored?.counters.highest, SignCounter(rawValue: 12))
        try table.close()
    }

    @Test func `a check says what is wrong, and what to do`() throws {
        let table = try table()
        try enrol(key, table)
        expectEqual(use(table, 5, at: enrolled + 1), .admitted)
        try table.committer.flush()
        let running = texts(.store, folder.database)
        #expect(running.allSatisfy { $0.hasPrefix("ok: ") }, "\(running)")
        #expect(running.contains { $0.contains("used by process \(getpid())") })
        try table.close()
        #expect(texts(.store, folder.database).allSatisfy { $0.hasPrefix("ok: ") })
        expectEqual(chmod(folder.database, 0o644), 0)
        #expect(texts(.store, folder.database).contains { $0.contains("chmod 600") })
        // An older copy.
        let file = folder.database + GenerationFile.suffix
        let record = try #require(GenerationFile.record(ofDatabase: folder.database))
        let ahead = Generation(store: record.generation.store, number: 1_000)
        _ = try GenerationFile(database: folder.database, GenerationFile.Record(generation: ahead))
        let older = texts(.store, folder.database)
        #expect(older.contains { $0.contains("problem: ") && $0.contains("is an older copy") })
        try FileManager.default.removeItem(atPath: file)
        // A counter of no key.
        let raw = try DatabaseQueue(path: folder.database)
        try raw.write { try $0.execute(sql: "DELETE FROM renewals; DELETE FROM receipts") }
        try raw.write { try $0.execute(sql: "DELETE FROM keys") }
        try raw.close()
        let stray = texts(.copy, folder.database)
        #expect(stray.contains { $0.contains("counters without a key: 1,") }, "\(stray)")
        try removeStore()
        #expect(texts(.store, folder.database).contains { $0.contains("there is no such file") })
    }

    @Test func `a store of another version is not read, and its tables stay as they are`() throws {
        try table().close()
        let old = try DatabaseQueue(path: folder.database)
        try old.write { try $0.execute(sql: "PRAGMA user_version = 4") }
        try old.close()
        var problem: StoreProblem?
        do throws(StoreProblem) {
            _ = try KeyAdministration(reading: folder.database)
        } catch {
            problem = error
        }
        expectEqual(problem?.reason, .otherVersion)
        expectEqual(problem?.hint.contains("use the portcullis that wrote it"), true)
        let after = try DatabaseQueue(path: folder.database)
        try expectEqual(after.read { try Int.fetchOne($0, sql: "PRAGMA user_version") }, 4)
    }
}
