import AppAttest
import Dispatch
import Expectations
import Foundation
import KeyStore
import LoopbackKit
import TestSupport
import Testing

@testable import PostgreSQLKeyStore

/// What the tables of a fleet keep of a deleted key.
@Suite struct ErasureTests {
    private let settings: PostgreSQLSettings
    private let archive: PostgreSQLKeyArchive
    private let link: DatabaseLink

    init() throws {
        settings = try DatabaseServer.shared.get().makeStore()
        archive = try PostgreSQLKeyArchive(settings)
        link = DatabaseLink(settings)
    }

    @discardableResult
    private func ask(_ sql: String, _ values: [StatementValue] = []) throws -> DatabaseRows {
        try #require(try link.ask([DatabaseStatement(sql, values)]).first)
    }

    /// The tables with a row that has an id or a public key of these, in any spelling.
    private func traces(of keys: [KeyRecord]) throws -> [String] {
        var found: [String] = []
        for table in DatabaseSchema.tables {
            let rows = try ask("SELECT t::text FROM \(table) t").compactMap { $0.text(0) }
            let text = rows.joined(separator: "\n")
            for key in keys {
                let point = Array(key.publicKey.x963.dropFirst())
                let all = [key.keyID.bytes, point].flatMap(ErasureContract.spellings)
                let texts = all.compactMap { String(data: $0, encoding: .utf8) }
                if texts.contains(where: text.contains) { found.append(table) }
            }
        }
        return found
    }

    private func enrol(_ records: [KeyRecord]) throws -> PostgreSQLKeyJournal {
        let journal = try PostgreSQLKeyJournal(settings, clock: { 0 })
        _ = try journal.load(apps: AppNumbers()) { _ in }
        let rows = try journal.commit(JournalBatch(enrolments: records)).enrolments
        expectEqual(rows.map { $0?.isNew }, records.map { _ in true })
        return journal
    }

    @Test func `of a deleted key no table has the id or the public key`() throws {
        var keys = (1...4).map { KeyRecord.sample($0) }
        keys[0].receipt = keys[0].keyID.bytes
        keys[1].context = keys[1].keyID.bytes
        let journal = try enrol(keys)
        let note = ChangeNote(now: 9, by: "test", why: "asked for")
        try expectEqual(archive.revoke(keys[0].keyID, note), .revoked)
        for key in keys.prefix(2) { try expectEqual(archive.delete(key.keyID, note), .deleted) }
        #expect(try !traces(of: Array(keys[0...1])).isEmpty)
        try expectEqual(archive.eraseDeleted(), 2)
        try expectEqual(traces(of: Array(keys[0...1])), [])
        #expect(try !traces(of: [keys[2]]).isEmpty)
        let left = try ask("SELECT 1 FROM keys WHERE counter <> 0 AND erased_under IS NOT NULL")
        expectEqual(left.count, 0)
        let again = try journal.commit(JournalBatch(enrolments: [keys[0], keys[2]])).enrolments
        expectEqual(again.map { $0?.isNew }, [false, false])
        expectEqual(again.first??.key.standing, .deleted)
        try expectEqual(traces(of: Array(keys[0...1])), [])
        journal.close()
        let next = try PostgreSQLKeyJournal(settings, clock: { 0 })
        let late = try next.commit(JournalBatch(enrolments: [keys[1]])).enrolments
        expectEqual(late.first??.key.standing, .deleted)
    }

    @Test func `an enrolment that waits for the erasure of its key is refused`() throws {
        let key = KeyRecord.sample(1)
        let journal = try enrol([key])
        try expectEqual(archive.delete(key.keyID, ChangeNote(now: 9)), .deleted)
        let row = try ask("SELECT id FROM keys")[0].present(0)
        let secrets = try archive.query { (session) throws(JournalError) in try session.secrets() }
        let secret = try #require(secrets.named.first)
        // Another command is in the middle of erasing it.
        let command = try DatabaseConnection.open(settings.address, until: .now + .seconds(30))
        func run(_ statements: [DatabaseStatement]) throws {
            for statement in statements {
                _ = try command.run([statement], until: .now + .seconds(30))
            }
        }
        let asked = DatabaseStatement("SELECT pg_backend_pid()::bigint")
        let answers = try command.run([asked], until: .now + .seconds(30))
        let process = try #require(answers.first)[0].present(0)
        let erased = ErasedKey(
            row: row,
            keyID: key.keyID,
            mark: secret.secret.mark(of: key.keyID),
            name: secret.name
        )
        let erasure = DatabaseMarks.erasure(of: [erased], doubles: [], in: .postgreSQL)
        try run([DatabaseStatement("BEGIN")] + erasure)
        let (done, box) = (DispatchSemaphore(value: 0), Box<EnrolledRow>())
        DispatchQueue(label: "test.enrolment").async {
            let answer = try? journal.commit(JournalBatch(enrolments: [key])).enrolments.first
            if let row = answer ?? nil { box.set(row) }
            done.signal()
        }
        let waiting = """
            SELECT 1 FROM pg_stat_activity WHERE $1::bigint::int = ANY (pg_blocking_pids(pid))
            """
        try #require(try eventually { try ask(waiting, [.number(process)]).count > 0 })
        try run([DatabaseStatement("COMMIT")])
        done.wait()
        let answer = try #require(box.value)
        expectEqual(answer.key.standing, .deleted)
        // What came in between goes with the next erasure.
        _ = try archive.eraseDeleted()
        try expectEqual(traces(of: [key]), [])
        try expectEqual(archive.delete(key.keyID, ChangeNote(now: 10)), .alreadyDeleted(at: 9))
        try expectEqual(ask("SELECT 1 FROM keys").count, 1)
    }
}
