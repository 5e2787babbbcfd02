import AppAttest
import GRDB
import KeyCatalog
import KeyStore
import TestSupport
import Testing

@testable import SQLiteKeyStore

@Suite struct KeyAdministrationTests {
    private let folder: TemporaryFolder
    private let keys: KeyAdministration

    init() throws {
        folder = try TemporaryFolder()
        keys = try KeyAdministration(path: folder.database, creates: true)
    }

    private func load(_ records: [KeyRecord]) throws {
        let text = records.map { KeyLine.text($0) + "\n" }.joined()
        let report = try keys.importLines(from: try folder.write(text, to: "load.jsonl"))
        #expect(report.inserted == records.count)
    }

    @Test func `keys are listed in the order of their ids, in pages`() throws {
        try load(KeyRecord.many(50))
        let all = try keys.scan(KeyFilter(), after: nil, limit: 100).records
        #expect(all.count == 50)
        let ids = all.map(\.keyID.bytes)
        #expect(ids == ids.sorted { $0.lexicographicallyPrecedes($1) })
        var paged: [KeyRecord] = []
        while true {
            let page = try keys.scan(KeyFilter(), after: paged.last?.keyID, limit: 7).records
            if page.isEmpty { break }
            paged += page
        }
        #expect(paged == all)
        var streamed: [KeyRecord] = []
        try keys.forEach { streamed.append($0) }
        #expect(streamed == all)
        #expect(try keys.count() == 50)
    }

    @Test func `filters choose by app, environment, status, source and last use`() throws {
        var one = KeyRecord.sample(1)
        one.lastUsedAt = 500
        var two = KeyRecord.sample(2)
        two.appID = "ABCDE12345.com.example.other"
        two.environment = .test
        two.source = .imported
        var three = KeyRecord.sample(3)
        three.status = .revoked(at: 77)
        try load([one, two, three])
        func ids(_ change: (inout KeyFilter) -> Void) throws -> Set<KeyID> {
            var filter = KeyFilter()
            change(&filter)
            return Set(try keys.scan(filter, after: nil, limit: 10).records.map(\.keyID))
        }
        #expect(try ids { $0.appID = one.appID } == [one.keyID, three.keyID])
        #expect(try ids { $0.environment = .test } == [two.keyID])
        #expect(try ids { $0.isRevoked = true } == [three.keyID])
        #expect(try ids { $0.isRevoked = false } == [one.keyID, two.keyID])
        #expect(try ids { $0.source = .imported } == [two.keyID])
        #expect(try ids { $0.unusedSince = 500 } == [two.keyID, three.keyID])
        #expect(try ids { $0.unusedSince = 501 }.count == 3)
        #expect(
            try ids {
                $0.appID = one.appID
                $0.isRevoked = true
            } == [three.keyID]
        )
    }

    @Test func `a key that was used a moment ago is not listed as unused`() throws {
        let key = KeyRecord.sample(1)
        let journal = try SQLiteKeyJournal(path: folder.database)
        _ = try journal.load(apps: AppNumbers()) { _ in }
        let row = try journal.commit(JournalBatch(enrolments: [key])).enrolments[0].key.row
        let change = CounterChange(
            row: row,
            counters: CounterState(highest: SignCounter(rawValue: 4)),
            usedAt: 900
        )
        _ = try journal.commit(JournalBatch(changes: [change]))
        var filter = KeyFilter()
        filter.unusedSince = 800
        #expect(try keys.scan(filter, after: nil, limit: 10).records.isEmpty)
        #expect(try keys.record(key.keyID)?.lastUsedAt == 900)
        #expect(try keys.record(key.keyID)?.counters.highest.rawValue == 4)
    }

    @Test func `a key is shown whole, and found by the name that logs give it`() throws {
        let key = KeyRecord.sample(1)
        try load([key, .sample(2)])
        #expect(try keys.record(key.keyID) == key)
        #expect(try keys.record(.numbered(1)) == nil)
        #expect(try keys.keyIDs(loggedAs: key.keyID.logName) == [key.keyID])
        #expect(try keys.keyIDs(loggedAs: "zz").isEmpty)
    }

    @Test func `a key is revoked once, and the first time stays`() throws {
        let key = KeyRecord.sample(1)
        try load([key])
        #expect(try keys.revoke(key.keyID, now: 100) == .revoked)
        #expect(try keys.revoke(key.keyID, now: 200) == .alreadyRevoked(at: 100))
        #expect(try keys.revoke(.numbered(1), now: 200) == .unknown)
        #expect(try keys.record(key.keyID)?.status == .revoked(at: 100))
    }

    @Test func `what is exported and imported elsewhere is the same`() throws {
        var records = (1...5).map { KeyRecord.sample($0, counter: UInt32($0) * 1_000) }
        records[0].status = .revoked(at: 1_700_000_001)
        records[1].source = .imported
        records[1].enrolledAt = nil
        records[2].lastUsedAt = 1_700_000_002
        records[3].receipt = nil
        records[3].counters = CounterState(highest: SignCounter(rawValue: .max), seen: 0x8001)
        try load(records)
        var octets: [UInt8] = []
        #expect(try keys.export { octets += $0 } == 5)
        let other = try TemporaryFolder()
        let copy = try KeyAdministration(path: other.database, creates: true)
        let file = try other.write(String(decoding: octets, as: UTF8.self), to: "export.jsonl")
        let report = try copy.importLines(from: file)
        #expect(report.inserted == 5)
        #expect(report.warnings.isEmpty)
        for record in records { #expect(try copy.record(record.keyID) == record) }
        var again: [UInt8] = []
        _ = try copy.export { again += $0 }
        #expect(again == octets)
    }

    @Test func `an export holds counters that are in the log only`() throws {
        let key = KeyRecord.sample(1)
        let table = try KeyTable(journal: try SQLiteKeyJournal(path: folder.database))
        table.enrol(key) { _ in }
        try table.committer.flush()
        let database = try KeyDatabase(path: folder.database, creates: false)
        let row = try #require(
            try database.queue.read { try Int64.fetchOne($0, sql: "SELECT id FROM keys") }
        )
        try database.queue.write { db in
            let change = CounterChange(
                row: row,
                counters: CounterState(highest: SignCounter(rawValue: 12)),
                usedAt: 5
            )
            try CounterLog.append([change], db)
        }
        var text = ""
        _ = try keys.export { text += String(decoding: $0, as: UTF8.self) }
        #expect(text.contains("\"counter\":12,"))
    }
}
