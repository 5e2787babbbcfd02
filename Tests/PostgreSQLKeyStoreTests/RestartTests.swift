import AppAttest
import Expectations
import KeyStore
import LoopbackKit
import TestSupport
import Testing

@testable import PostgreSQLKeyStore

/// A server of its own, which crashes or takes no writes.
@Suite struct RestartTests {
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

    @Test func `a server that crashed and came back knows all that was answered`() throws {
        let server = try DatabaseServer()
        defer { server.end() }
        let journal = try PostgreSQLKeyJournal(try server.makeStore(), clock: { 0 })
        let stored = try journal.commit(JournalBatch(enrolments: [.sample(1)])).enrolments
        let key = try #require(stored[0]).key
        try expectEqual(journal.commit(Self.use(key, 5)).uses, [.used])
        try server.crash()
        for _ in 0..<3 {
            #expect(throws: JournalError.self) { try journal.commit(Self.use(key, 6)) }
        }
        try server.start()
        try expectEqual(untilItSucceeds { try journal.commit(Self.use(key, 6)).uses }, [.used])
        try expectEqual(journal.commit(Self.use(key, 5)).uses, [.refused(.replayed)])
        try expectEqual(journal.commit(Self.use(key, 6)).uses, [.refused(.replayed)])
        let statistics = try #require(journal.databaseStatistics)
        #expect(statistics.connections.reduce(0) { $0 + $1.made } >= 3)
        #expect(statistics.connections.reduce(0) { $0 + $1.lost } >= 1)
        journal.close()
    }

    @Test func `a server that takes no writes is refused, and of two hosts the other is found`()
        throws
    {
        let server = try DatabaseServer()
        defer { server.end() }
        let settings = try server.makeStore()
        let journal = try PostgreSQLKeyJournal(settings, clock: { 0 })
        let stored = try journal.commit(JournalBatch(enrolments: [.sample(1)])).enrolments
        let key = try #require(stored[0]).key
        let role = DatabaseLink(settings)
        func readOnly(_ word: String) throws {
            _ = try role.ask([
                DatabaseStatement("SET transaction_read_only = off"),
                DatabaseStatement(
                    "ALTER ROLE portcullis SET default_transaction_read_only = \(word)"
                ),
                DatabaseStatement(
                    """
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE usename = 'portcullis' AND pid <> pg_backend_pid()
                    """
                ),
            ])
        }
        try readOnly("on")
        // The first try finds that its connection is gone.
        #expect(throws: JournalError.self) { try journal.commit(Self.use(key, 1)) }
        let reason: JournalError.Reason = try untilItSucceeds {
            do {
                _ = try journal.commit(Self.use(key, 1))
                throw StoreContract.Unexpected("what takes no writes was written")
            } catch let error as JournalError where error.detail.contains("read-only") {
                return error.reason
            }
        }
        expectEqual(reason, .unusable)

        // What a fleet with a standby says: the first host takes no writes, the second does.
        let second = try DatabaseServer.shared.get()
        let other = try second.makeStore()
        let schema = try #require(other.address.firstMatch(of: /search_path=[a-z0-9]+/)).0
        let both = PostgreSQLSettings(
            address: "host=\(server.folder),\(second.folder) user=portcullis dbname=postgres "
                + "target_session_attrs=read-write options='-c \(schema)'"
        )
        let pair = try PostgreSQLKeyJournal(both, clock: { 0 })
        _ = try pair.commit(JournalBatch(enrolments: [.sample(2)]))
        try expectEqual(PostgreSQLKeyArchive(other).count(), 1)

        try readOnly("off")
        try expectEqual(untilItSucceeds { try journal.commit(Self.use(key, 1)).uses }, [.used])
    }
}
