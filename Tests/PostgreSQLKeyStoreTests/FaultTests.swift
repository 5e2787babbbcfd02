import AppAttest
import Dispatch
import Expectations
import KeyStore
import LoopbackKit
import TestSupport
import Testing

@testable import PostgreSQLKeyStore

/// What a gateway is told while the database fails.
@Suite struct FaultTests {
    @Test func `an empty database is refused with the command that makes its tables`() throws {
        let server = try DatabaseServer.shared.get()
        let settings = try server.makeSchema()
        let refusal = #expect(throws: JournalError.self) { try PostgreSQLKeyJournal(settings) }
        expectEqual(refusal?.detail.contains("run portcullis store migrate"), true)
        // No outage: a start does not wait for it.
        #expect(throws: JournalError.self) { try PostgreSQLKeyJournal(settings, canWait: true) }
        #expect(try DatabaseTables.make(settings))
        #expect(try !DatabaseTables.make(settings))
        _ = try PostgreSQLKeyJournal(settings)
    }

    @Test func `of programs side by side one makes the tables, and all of them succeed`() throws {
        let server = try DatabaseServer.shared.get()
        for _ in 0..<5 {
            let settings = try server.makeSchema()
            let boxes = (0..<6).map { _ in Box<Bool>() }
            DispatchQueue.concurrentPerform(iterations: boxes.count) { place in
                do {
                    boxes[place].set(try DatabaseTables.make(settings))
                } catch {
                    Issue.record("\(error)")
                }
            }
            expectEqual(boxes.compactMap(\.value).count, boxes.count)
            expectEqual(boxes.count { $0.value == true }, 1)
        }
    }

    @Test(arguments: [DatabaseSchema.version + 1, -1])
    func `tables of another version are refused`(version: Int64) throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        let change = DatabaseStatement("UPDATE state SET version = $1", [.number(version)])
        _ = try DatabaseLink(settings).ask([change])
        for use in [
            { _ = try PostgreSQLKeyJournal(settings) }, { _ = try DatabaseTables.make(settings) },
        ] as [() throws -> Void] {
            let refusal = #expect(throws: JournalError.self) { try use() }
            expectEqual(
                refusal?.detail,
                "the tables are of version \(version), and this program uses version 1"
            )
            expectEqual(refusal?.next, "use the portcullis that made them, or a later one")
        }
        #expect(throws: StoreProblem.self) { try PostgreSQLKeyArchive(settings) }
    }

    @Test func `nobody who listens is told by the time, and without a password`() throws {
        let settings = PostgreSQLSettings(address: "host=/nowhere password=s3cret dbname=x")
        let refusal = #expect(throws: JournalError.self) { try PostgreSQLKeyJournal(settings) }
        expectEqual(refusal?.reason, .unusable)
        expectEqual(refusal?.detail.contains("s3cret"), false)
    }

    @Test func `a lock that another holds ends in time, and the next commit is good`() throws {
        var settings = try DatabaseServer.shared.get().makeStore()
        let first = try PostgreSQLKeyJournal(settings, clock: { 0 })
        let key = try #require(
            try first.commit(JournalBatch(enrolments: [.sample(1)])).enrolments[0]
        ).key
        settings.statementTimeout = .seconds(1)
        let journal = try PostgreSQLKeyJournal(settings, clock: { 0 })
        let holder = try DatabaseConnection.open(
            settings.address,
            until: .now + .seconds(5)
        )
        // A transaction of its own, so that the lock outlasts the round trip.
        _ = try holder.run([DatabaseStatement("BEGIN")], until: .now + .seconds(5))
        _ = try holder.run(
            [DatabaseStatement("SELECT id FROM keys FOR UPDATE")],
            until: .now + .seconds(5)
        )
        func use(_ counter: UInt32) -> JournalBatch {
            JournalBatch(uses: [
                CounterAdvance(
                    CounterUse(
                        of: key.keyID,
                        counter: SignCounter(rawValue: counter),
                        rule: .strict,
                        challenge: nil
                    ),
                    row: key.row,
                    usedAt: 1
                )
            ])
        }
        let refusal = #expect(throws: JournalError.self) { try journal.commit(use(1)) }
        expectEqual(refusal?.reason, .busy)
        _ = try holder.run([DatabaseStatement("ROLLBACK")], until: .now + .seconds(5))
        let answer = try untilItSucceeds { try journal.commit(use(2)).uses.first }
        expectEqual(answer, .used)
    }

    @Test func `what the database refuses at the very end of a transaction is refused`() throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        let journal = try PostgreSQLKeyJournal(settings, clock: { 0 })
        let link = DatabaseLink(settings)
        _ = try link.ask([
            DatabaseStatement(
                """
                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$
                """
            ),
            DatabaseStatement(
                """
                CREATE CONSTRAINT TRIGGER late AFTER INSERT ON keys
                DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()
                """
            ),
        ])
        let batch = JournalBatch(enrolments: [.sample(1)])
        let refusal = #expect(throws: JournalError.self) { try journal.commit(batch) }
        expectEqual(refusal?.reason, .full)
        try expectEqual(PostgreSQLKeyArchive(settings).count(), 0)
        // The connection is good, and the next transaction goes through.
        _ = try link.ask([DatabaseStatement("DROP TRIGGER late ON keys")])
        try expectEqual(journal.commit(batch).enrolments[0]?.isNew, true)
    }

    @Test func `keys expire with their record, or not at all`() throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        let journal = try PostgreSQLKeyJournal(settings, clock: { 0 })
        _ = try journal.commit(JournalBatch(enrolments: [.sample(1), .sample(2)]))
        let link = DatabaseLink(settings)
        _ = try link.ask([
            DatabaseStatement("UPDATE keys SET enrolled_at = 5, last_used_at = 5"),
            DatabaseStatement(
                """
                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$
                """
            ),
            DatabaseStatement(
                """
                CREATE TRIGGER refuse BEFORE INSERT ON key_changes
                FOR EACH ROW EXECUTE FUNCTION refuse()
                """
            ),
        ])
        let archive = try PostgreSQLKeyArchive(settings)
        let note = ChangeNote(now: 9, by: "test", why: "unused")
        #expect(throws: StoreProblem.self) { try archive.expireAll(unusedSince: 6, note) }
        try expectEqual(archive.count(), 2)
        _ = try link.ask([DatabaseStatement("DROP TRIGGER refuse ON key_changes")])
        try expectEqual(archive.expireAll(unusedSince: 6, note), 2)
        let changes = try archive.changes(of: nil, limit: 9)
        expectEqual(changes, [KeyChange(.expired, of: nil, keys: 2, note)])
        try expectEqual(archive.expireAll(unusedSince: 6, note), 0)
        try expectEqual(archive.changes(of: nil, limit: 9).count, 1)
    }

    @Test func `a connection that the server has ended is made anew`() throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        var named = settings
        named.address += " application_name=ended"
        let journal = try PostgreSQLKeyJournal(named, clock: { 0 })
        let key = try #require(
            try journal.commit(JournalBatch(enrolments: [.sample(1)])).enrolments[0]
        ).key
        let ended = try DatabaseLink(settings).ask([
            DatabaseStatement(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE application_name = 'ended'
                """
            )
        ])
        #expect((ended.first?.count ?? 0) >= 2)
        let batch = JournalBatch(changes: [
            CounterChange(
                row: key.row,
                counters: CounterState(highest: SignCounter(rawValue: 3)),
                usedAt: 1
            )
        ])
        _ = try untilItSucceeds { try journal.commit(batch) }
        try expectEqual(
            PostgreSQLKeyArchive(settings).record(key.keyID)?.counters.highest.rawValue,
            3
        )
    }

    @Test func `a gateway hears of a change without being asked`() throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        let journal = try PostgreSQLKeyJournal(settings, clock: { 0 })
        _ = try journal.commit(JournalBatch(enrolments: [.sample(1)]))
        let table = try KeyTable(journal: journal)
        let changed = DispatchSemaphore(value: 0)
        table.watchChanges { changed.signal() }
        let keyID = KeyRecord.sample(1).keyID
        try expectEqual(PostgreSQLKeyArchive(settings).revoke(keyID, ChangeNote(now: 1)), .revoked)
        expectEqual(changed.wait(timeout: .now() + 10), .success)
        expectEqual(table.revokedCount, 1)
        try table.close()
    }

    /// A table of two keys, of which the first was revoked, and the commands.
    private func table(
        _ settings: PostgreSQLSettings,
        named name: String
    ) throws -> (KeyTable, PostgreSQLKeyArchive) {
        var named = settings
        named.address += " application_name=\(name)"
        let journal = try PostgreSQLKeyJournal(named, clock: { 0 })
        _ = try journal.commit(JournalBatch(enrolments: [.sample(1), .sample(2)]))
        let table = try KeyTable(journal: journal)
        let archive = try PostgreSQLKeyArchive(settings)
        try expectEqual(archive.revoke(KeyRecord.sample(1).keyID, ChangeNote(now: 1)), .revoked)
        expectEqual(table.refresh(), nil)
        expectEqual(table.revokedCount, 1)
        return (table, archive)
    }

    /// A standby that had not got the first revocation takes over.
    private func lose(_ settings: PostgreSQLSettings) throws {
        _ = try DatabaseLink(settings).ask([
            DatabaseStatement("UPDATE keys SET revoked_at = NULL, revision = 0"),
            DatabaseStatement("UPDATE state SET revision = 0"),
        ])
    }

    @Test func `a revocation that gets the revision of a lost one is read`() throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        let (table, archive) = try table(settings, named: "older")
        try lose(settings)
        // It sees that something is lost, whatever it says of it.
        _ = table.refresh()
        try expectEqual(archive.revoke(KeyRecord.sample(2).keyID, ChangeNote(now: 2)), .revoked)
        #expect(eventually { table.refresh() == nil && table.revokedCount == 2 })
        try table.close()
    }

    @Test func `what a standby lacks of the last seconds is told, and gateways go on`() throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        let (table, archive) = try table(settings, named: "lacking")
        let told = Box<JournalError>()
        table.watchReading { error in if let error { told.set(error) } }
        try lose(settings)
        #expect(eventually { table.refresh() == nil })
        // The follower may have read first, and tell later.
        #expect(eventually { told.value != nil })
        let fault = try #require(told.value)
        expectEqual(fault.reason, .replaced)
        expectEqual(fault.next?.contains("portcullis keys history"), true)
        // What is known here stays.
        expectEqual(table.revokedCount, 1)
        try expectEqual(archive.revoke(KeyRecord.sample(2).keyID, ChangeNote(now: 2)), .revoked)
        #expect(eventually { table.refresh() == nil && table.revokedCount == 2 })
        try table.close()
    }

    @Test func `a database that was put back far is not used by a gateway that knows better`()
        throws
    {
        let settings = try DatabaseServer.shared.get().makeStore()
        _ = try DatabaseLink(settings).ask([
            DatabaseStatement("UPDATE state SET revision = 1000")
        ])
        let (table, _) = try table(settings, named: "back")
        try lose(settings)
        for _ in 0..<3 { expectEqual(table.refresh()?.reason, .replaced) }
        #expect(throws: JournalError.self) { try table.close() }
    }

    @Test func `a revocation in the place of a lost one is read over the next connection`() throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        let (table, _) = try table(settings, named: "again")
        _ = try DatabaseLink(settings).ask([
            DatabaseStatement("UPDATE keys SET revoked_at = NULL, revision = 0"),
            DatabaseStatement(
                "UPDATE keys SET revoked_at = 2, revision = 1 WHERE key_id = $1",
                [.bytes(KeyRecord.sample(2).keyID.bytes)]
            ),
            DatabaseStatement(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE application_name = 'again'
                """
            ),
        ])
        #expect(eventually { table.refresh() == nil && table.revokedCount == 2 })
        try table.close()
    }
}
