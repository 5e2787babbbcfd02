import AppAttest
import Encodings
import Expectations
import Foundation
import KeyStore
import LoopbackKit
import TestSupport
import Testing
import Tokens

@testable import PostgreSQLKeyStore

/// Databases as released versions have written them, in Tests/Vectors/store: every later build of
/// the same major version opens them.
@Suite(.enabled(if: DatabaseServer.programs != nil)) struct ReleasedStoreTests {
    private static let versions = ["1.0.0"]
    /// Shortly before those were written: nothing in them has expired.
    private static let second: Int64 = 1_795_993_000

    private func restore(_ version: String) throws -> PostgreSQLSettings {
        let settings = try DatabaseServer.shared.get().makeSchema()
        let file = SoftwareVectorFiles.folder.appending(path: "store/\(version)/postgresql.sql")
        let words = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", settings.address, "-f", file.path]
        let made = try ChildProcess.run("\(DatabaseServer.requirePrograms())/psql", words)
        guard made.status == 0 else { throw ChildProcess.Failure(description: "psql: \(made)") }
        return settings
    }

    private func rows(_ journal: PostgreSQLKeyJournal) throws -> [KeyRow] {
        var rows: [KeyRow] = []
        _ = try journal.load(apps: AppNumbers()) { rows += $0 }
        return rows
    }

    private func use(
        _ key: KeyRow,
        _ counter: UInt32,
        challenge: ChallengeSerial? = nil
    ) -> CounterAdvance {
        CounterAdvance(
            CounterUse(
                of: key.keyID,
                counter: SignCounter(rawValue: counter),
                rule: .strict,
                challenge: challenge
            ),
            row: key.row,
            usedAt: Self.second
        )
    }

    @Test(arguments: versions)
    func `counters go on where they stood, and what was used or revoked is refused`(
        _ version: String
    ) throws {
        let settings = try restore(version)
        let journal = try PostgreSQLKeyJournal(settings, clock: { Self.second })
        defer { journal.close() }
        let keys = try rows(journal)
        expectEqual(keys.map(\.counters.highest.rawValue).sorted(), [4, 6, 9, 10])
        let revoked = keys.filter { $0.standing == .revoked }
        expectEqual(revoked.count, 1)
        func answers(_ uses: [CounterAdvance]) throws -> [UseAnswer] {
            try journal.commit(JournalBatch(uses: uses)).uses
        }
        for key in keys where key.standing != .revoked {
            let highest = key.counters.highest.rawValue
            try expectEqual(answers([use(key, highest)]), [.refused(.replayed)])
            try expectEqual(answers([use(key, highest + 1)]), [.used])
        }
        try expectEqual(answers(revoked.map { use($0, 100) }), [.refused(.revoked)])
        let receipts = try #require(journal.receiptStore())
        // Of keys of iPhones that are active.
        try expectEqual(receipts.census(at: 0).receipts, 2)
    }

    @Test(arguments: versions)
    func `challenges and tokens that were spent are spent`(_ version: String) throws {
        let settings = try restore(version)
        let journal = try PostgreSQLKeyJournal(settings, clock: { Self.second })
        let link = DatabaseLink(settings)
        let select = "SELECT epoch, number, expires_at FROM spent_challenges WHERE purpose = $1"
        let purpose = ChallengePurpose.assertion
        let found = try link.ask([
            DatabaseStatement(select, [.number(Int64(purpose.rawValue))])
        ])
        let spent = try found[0].map { row in
            var out = ByteWriter()
            out.byte(purpose.rawValue)
            for column in 0..<2 { out.word(UInt64(bitPattern: try row.present(column))) }
            out.number(try row.present(2))
            var bytes = ByteReader(out.bytes)
            return try ChallengeSerial(from: &bytes)
        }
        expectEqual(spent.count, 5)
        let key = try #require(try rows(journal).first { $0.standing != .revoked })
        for challenge in spent {
            let batch = JournalBatch(uses: [use(key, 1_000, challenge: challenge)])
            try expectEqual(journal.commit(batch).uses, [.refused(.challengeSpent)])
        }
        link.close()
        let tokens = try PostgreSQLKeyArchive(settings).spentTokens(after: nil, limit: 10)
        expectEqual(tokens.count, 1)
        let table = try KeyTable(journal: journal)
        try expectEqual(SpentTokensContract.spend(tokens, by: table), [.spent])
        try table.close()
    }

    @Test(arguments: versions)
    func `the order of an operator holds, and commands say what was done`(
        _ version: String
    ) throws {
        let settings = try restore(version)
        let fleet = FleetDatabase(settings)
        let reading = try fleet.reading(after: 0)
        expectEqual(reading.version, 1)
        #expect(reading.orders?.contains(#""why": "old phones fail""#) == true)
        expectEqual(reading.changes.map(\.to), ["observe (command)"])
        expectEqual(reading.members.map(\.name), ["shop-1"])
        fleet.close()
        let keys = try PostgreSQLKeyArchive(settings)
        let records = try keys.scan(KeyFilter(), after: nil, limit: 100).records
        expectEqual(records.count, 4)
        try expectEqual(keys.changes(of: nil, limit: 10).map(\.action), [.revoked])
        keys.close()
    }
}
