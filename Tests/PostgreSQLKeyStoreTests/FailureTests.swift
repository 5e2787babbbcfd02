import AppAttest
import Cryptography
import Dispatch
import Expectations
import Foundation
import KeyStore
import LoopbackKit
import TestSupport
import Testing
import Tokens

@testable import PostgreSQLKeyStore

/// No assertion is admitted twice, whatever happens to the database in the middle of it.
@Suite struct FailureTests {
    private let settings: PostgreSQLSettings
    private let link: DatabaseLink

    init() throws {
        settings = try DatabaseServer.shared.get().makeStore()
        link = DatabaseLink(settings)
    }

    /// A journal whose connections have this name, with one key. Another journal enrols the key, so
    /// that a short timeout does not end that.
    private func journal(
        _ name: String,
        _ change: (inout PostgreSQLSettings) -> Void = { _ in }
    ) throws -> (PostgreSQLKeyJournal, KeyRow) {
        var settings = settings
        settings.address += " application_name=\(name)"
        change(&settings)
        let first = try PostgreSQLKeyJournal(self.settings, clock: { 0 })
        let stored = try first.commit(JournalBatch(enrolments: [.sample(1)])).enrolments
        let journal = try PostgreSQLKeyJournal(settings, clock: { 0 })
        return (journal, try #require(stored[0]).key)
    }

    private static func use(_ key: KeyRow, _ counter: UInt32) -> JournalBatch {
        let use = CounterAdvance(
            CounterUse(
                of: key.keyID,
                counter: SignCounter(rawValue: counter),
                rule: .strict,
                challenge: nil
            ),
            row: key.row,
            usedAt: 1
        )
        return JournalBatch(uses: [use])
    }

    /// Asks until there is an answer, for as long as pauses between connections may last.
    private func answer(
        _ journal: PostgreSQLKeyJournal,
        _ batch: JournalBatch
    ) throws -> (answer: UseAnswer?, faults: Int) {
        var faults = 0
        let answer = try untilItSucceeds {
            do { return try journal.commit(batch).uses.first } catch {
                faults += 1
                throw error
            }
        }
        return (answer, faults)
    }

    private func run(_ sql: String...) throws {
        _ = try link.ask(sql.map { DatabaseStatement($0) })
    }

    @Test func `while the server ends connections, each counter is used once`() throws {
        let (journal, key) = try journal("ended2")
        // One connection is certainly ended within a transaction. The others end at any moment.
        try run(
            "CREATE SEQUENCE updates",
            """
            CREATE FUNCTION end_one() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN
                IF nextval('updates') = 30 THEN
                    PERFORM pg_terminate_backend(pg_backend_pid());
                END IF;
                RETURN NEW;
            END $$
            """,
            "CREATE TRIGGER end_one BEFORE UPDATE ON keys FOR EACH ROW EXECUTE FUNCTION end_one()"
        )
        var faults = 0
        for counter in UInt32(1)...60 {
            let ending = DispatchGroup()
            if counter % 6 == 0 {
                DispatchQueue(label: "test.ending").async(group: ending) {
                    try? run(
                        """
                        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                        WHERE application_name = 'ended2'
                        """
                    )
                }
            }
            let (answer, found) = try self.answer(journal, Self.use(key, counter))
            // Where no answer came, the use may have been made all the same.
            #expect(answer == .used || found > 0 && answer == .refused(.replayed))
            faults += found
            ending.wait()
            let again = try self.answer(journal, Self.use(key, counter))
            expectEqual(again.answer, .refused(.replayed))
            faults += again.faults
        }
        #expect(faults > 0)
        let stored = try PostgreSQLKeyArchive(settings).record(key.keyID)
        expectEqual(stored?.counters.highest.rawValue, 60)
    }

    @Test func `a use whose answer is lost at the commit is unassured, and made only once`() throws
    {
        let (journal, key) = try journal("late") { $0.statementTimeout = .milliseconds(400) }
        // The server is at the end of the transaction for longer than anybody waits for it.
        try run(
            """
            CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$
            """,
            """
            CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON keys
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger()
            """
        )
        var limits = Committer.Limits()
        limits.retryDelay = .seconds(3_600)
        let table = try KeyTable(journal: journal, limits: limits)
        let log = TicketLog()
        table.committer.register(log)
        func consume() -> ConsumeOutcome {
            table.consume(
                CounterUse(
                    of: key.keyID,
                    counter: SignCounter(rawValue: 1),
                    rule: .strict,
                    challenge: nil
                ),
                issuer: ChallengeIssuer(),
                now: 1
            )
        }
        guard case .pending(let ticket) = consume() else {
            throw StoreContract.Unexpected("the database was not asked")
        }
        #expect(throws: JournalError.self) { try table.committer.flush() }
        expectEqual(log.decision(of: ticket), .unassured)
        expectEqual(consume(), .decided(.refused(.replayed)))
        // The transaction was committed, and no gateway uses the counter once more.
        try run("DROP TRIGGER late ON keys")
        let other = try PostgreSQLKeyJournal(settings, clock: { 0 })
        try expectEqual(answer(other, Self.use(key, 1)).answer, .refused(.replayed))
        try expectEqual(answer(other, Self.use(key, 2)).answer, .used)
    }

    @Test func `a server that stands still is left in time, and its batch is made once at most`()
        throws
    {
        let (journal, key) = try journal("still") { $0.statementTimeout = .seconds(2) }
        try expectEqual(answer(journal, Self.use(key, 1)).answer, .used)
        let rows = try #require(
            try link.ask([
                DatabaseStatement(
                    "SELECT pid::bigint FROM pg_stat_activity WHERE application_name = 'still'"
                )
            ]).first
        )
        let pids = try rows.map { pid_t(try $0.present(0)) }
        for pid in pids { kill(pid, SIGSTOP) }
        let start = ContinuousClock.now
        let fault = #expect(throws: JournalError.self) {
            try journal.commit(Self.use(key, 2))
        }
        expectEqual(fault?.reason, .busy)
        #expect(ContinuousClock.now - start < .seconds(20))
        for pid in pids { kill(pid, SIGCONT) }
        let answers = try (0..<2).map { _ in try answer(journal, Self.use(key, 2)).answer }
        expectEqual(answers[1], .refused(.replayed))
        try expectEqual(answer(journal, Self.use(key, 3)).answer, .used)
    }

    @Test func `a command may take longer than a use, and writes more keys than one transaction`()
        throws
    {
        try run(
            """
            CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(0.6); RETURN NEW; END $$
            """,
            """
            CREATE TRIGGER late AFTER INSERT ON keys
            FOR EACH ROW WHEN (NEW.counter = 7) EXECUTE FUNCTION linger()
            """
        )
        var impatient = settings
        impatient.statementTimeout = .milliseconds(300)
        let archive = try PostgreSQLKeyArchive(impatient)
        let records = (0..<2_100)
            .map { number in
                let seed = [UInt8(number / 256), UInt8(number % 256), 9]
                let key = P256PrivateKey(seed: seed.span).publicKey
                var record = KeyRecord.sample(1, counter: number == 1_500 ? 7 : 0)
                record.keyID = KeyID(of: key)
                record.publicKey = key
                return record
            }
        let outcomes = try archive.store(records)
        expectEqual(
            outcomes.count { if case .inserted = $0 { true } else { false } },
            records.count
        )
        try expectEqual(archive.count(), records.count)
    }

    @Test func `a key that a list revokes while a command does is revoked by the command`() throws {
        let archive = try PostgreSQLKeyArchive(settings)
        let phone = KeyRecord.phone(1)
        _ = try archive.store([phone])
        // The list's change comes between the two transactions of the command.
        try run(
            """
            CREATE FUNCTION list() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN
                UPDATE keys SET revoked_at = 5;
                UPDATE chains SET listed = '1 REVOKED';
                RETURN NEW;
            END $$
            """,
            "CREATE TRIGGER list BEFORE UPDATE ON state FOR EACH ROW EXECUTE FUNCTION list()"
        )
        try expectEqual(archive.revoke(phone.keyID, ChangeNote(now: 50)), .revoked)
        try run("DROP TRIGGER list ON state")
        try ListedKeysContract.compare(archive, with: [:])
        let stored = try archive.record(phone.keyID)
        expectEqual(stored?.status, .revoked(at: 50))
        expectEqual(stored?.chain?.listed, nil)
    }

    @Test func `others at the same rows are waited for a bounded number of times`() throws {
        let (journal, key) = try journal("collision")
        try run(
            "CREATE SEQUENCE tries",
            """
            CREATE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN
                IF nextval('tries') % 4 <> 0 THEN
                    RAISE EXCEPTION 'collision' USING ERRCODE = '40001';
                END IF;
                RETURN NEW;
            END $$
            """,
            "CREATE TRIGGER collide BEFORE UPDATE ON keys FOR EACH ROW EXECUTE FUNCTION collide()"
        )
        try expectEqual(journal.commit(Self.use(key, 1)).uses, [.used])
        expectEqual(journal.databaseStatistics?.retries.serialization, 3)
        try run("ALTER SEQUENCE tries RESTART WITH 1 INCREMENT BY 4")
        let fault = #expect(throws: JournalError.self) { try journal.commit(Self.use(key, 2)) }
        expectEqual(fault?.reason, .busy)
        expectEqual(journal.databaseStatistics?.retries.serialization, 7)
        try run("DROP TRIGGER collide ON keys")
        try expectEqual(journal.commit(Self.use(key, 2)).uses, [.used])
    }

    @Test func `a deadlock with another program is resolved, and the use is made`() throws {
        let (journal, key) = try journal("deadlock") { $0.statementTimeout = .seconds(10) }
        let second = try #require(
            try journal.commit(JournalBatch(enrolments: [.sample(2)])).enrolments[0]
        ).key
        let other = try DatabaseConnection.open(settings.address, until: .now + .seconds(5))
        func ask(_ sql: String) throws {
            _ = try other.run([DatabaseStatement(sql)], until: .now + .seconds(10))
        }
        try ask("BEGIN")
        try ask("SELECT id FROM keys WHERE id = \(second.row) FOR UPDATE")
        let group = DispatchGroup()
        let answers = Box<[UseAnswer]>()
        DispatchQueue(label: "test.deadlock").async(group: group) {
            let uses = Self.use(key, 1).uses + Self.use(second, 1).uses
            if let answer = try? journal.commit(JournalBatch(uses: uses)) {
                answers.set(answer.uses)
            }
        }
        // The journal has the first and waits for the second; this one now wants the first. Which
        // of the two is ended is the server's choice.
        try? ask("SELECT id FROM keys WHERE id = \(key.row) FOR UPDATE")
        try ask("ROLLBACK")
        group.wait()
        expectEqual(answers.value, [.used, .used])
    }

    @Test func `where the role has no connection left, that is told, and later one is found`()
        throws
    {
        let schema = settings.address.firstMatch(of: /lab[0-9]+/).map { String($0.0) } ?? ""
        let role = "few_\(schema)"
        try run(
            "CREATE ROLE \(role) LOGIN CONNECTION LIMIT 1",
            "GRANT ALL ON SCHEMA \(schema) TO \(role)",
            "GRANT ALL ON ALL TABLES IN SCHEMA \(schema) TO \(role)"
        )
        var few = settings
        few.address = few.address.replacing("user=portcullis", with: "user=\(role)")
        // The connection that reads is the one.
        let journal = try PostgreSQLKeyJournal(few, clock: { 0 })
        let batch = JournalBatch(enrolments: [.sample(1)])
        let fault = #expect(throws: JournalError.self) { try journal.commit(batch) }
        expectEqual(fault?.reason, .unusable)
        expectEqual(fault?.detail.contains("too many connections"), true)
        try run("ALTER ROLE \(role) CONNECTION LIMIT 9")
        _ = try answer(journal, batch)
        try expectEqual(PostgreSQLKeyArchive(settings).count(), 1)
    }

    @Test func `pauses between connections grow, end at 1.6 s and differ`() {
        for failures in 0..<12 {
            let longest = Duration.milliseconds(50 * (1 << min(failures, 5)))
            let pauses = Set((0..<60).map { _ in DatabaseLink.pause(after: failures) })
            #expect(pauses.allSatisfy { longest / 2 <= $0 && $0 <= longest })
            #expect(pauses.count > 5)
        }
    }
}
