import Expectations
import GRDB
import KeyStore
import TestSupport
import Testing

@testable import SQLiteKeyStore

@Suite struct ReceiptStoreTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static func key(_ number: UInt8, receipt: [UInt8]? = [1, 2, 3]) -> KeyRecord {
        var key = KeyRecord.sample(number)
        key.receipt = receipt
        return key
    }

    private func open() throws -> SQLiteKeyJournal {
        let journal = try SQLiteKeyJournal(path: folder.database)
        _ = try journal.load(apps: AppNumbers()) { _ in }
        return journal
    }

    private func due(_ journal: SQLiteKeyJournal, at now: Int64) throws -> [DueReceipt] {
        var found: [DueReceipt] = []
        try journal.receiptStore()?.forEachDue(at: now) { found.append($0) }
        return found.sorted { $0.row < $1.row }
    }

    @Test func `what is asked once the store is closed is refused, and reads nothing that is gone`()
        throws
    {
        let journal = try open()
        let receipts = try #require(try journal.receiptStore())
        try receipts.forEachDue(at: 0) { _ in }
        journal.close()
        for ask in [
            { try receipts.forEachDue(at: 0) { _ in } }, { _ = try receipts.census(at: 0) },
            { _ = try journal.load(apps: AppNumbers()) { _ in } },
            { _ = try journal.commit(JournalBatch(enrolments: [Self.key(1)])) },
        ] as [() throws -> Void] {
            let error = #expect(throws: JournalError.self) { try ask() }
            expectEqual(error?.reason, .closed)
        }
    }

    @Test func `what is due is asked of active keys with a receipt alone, with their last use`()
        throws
    {
        let journal = try open()
        defer { journal.close() }
        var keys = (1...5).map { Self.key(UInt8($0)) }
        keys[1].receiptState.dueAt = 500
        keys[2].receiptState.dueAt = nil
        keys[3].status = .revoked(at: 7)
        keys[4].receipt = nil
        let rows = try journal.commit(JournalBatch(enrolments: keys)).enrolments.compactMap(
            \.?.key.row
        )
        let use = CounterChange(row: rows[0], counters: CounterState(), usedAt: 321)
        _ = try journal.commit(JournalBatch(changes: [use]))
        try expectEqual(due(journal, at: 499).map(\.row), [rows[0]])
        try expectEqual(due(journal, at: 500).map(\.row), [rows[0], rows[1]])
        // It is in the log of counters, and not yet in the row of the key.
        try expectEqual(due(journal, at: 500).map(\.lastUsedAt), [321, nil])
        #expect(try journal.receiptStore()?.receipt(ofRow: rows[3]) == nil)
        let census = try #require(try journal.receiptStore()?.census(at: 500))
        expectEqual(census.receipts, 3)
        expectEqual(census.due, 2)
        expectEqual(census.untried, 3)
        #expect(census.outcomes.isEmpty)
    }

    @Test func `a command has a receipt renewed first, and says why where it can't`() throws {
        let journal = try open()
        defer { journal.close() }
        var keys = (1...4).map { Self.key(UInt8($0)) }
        keys[0].receiptState.dueAt = 9_000
        keys[1].receiptState.notBefore = 2_000
        keys[2].receipt = nil
        keys[3].status = .revoked(at: 7)
        _ = try journal.commit(JournalBatch(enrolments: keys))
        // Somebody who answers the command.
        journal.follow { nil }
        let commands = try KeyAdministration(path: folder.database)
        try expectEqual(commands.askRenewal(of: keys[0].keyID, now: 1_000), .asked)
        try expectEqual(commands.askRenewal(of: keys[1].keyID, now: 1_000), .tooEarly(until: 2_000))
        try expectEqual(commands.askRenewal(of: keys[1].keyID, now: 2_000), .asked)
        try expectEqual(commands.askRenewal(of: keys[2].keyID, now: 1_000), .withoutReceipt)
        try expectEqual(commands.askRenewal(of: keys[3].keyID, now: 1_000), .revoked)
        let stranger = KeyRecord.sample(9).keyID
        try expectEqual(commands.askRenewal(of: stranger, now: 1_000), .unknown)
        try expectEqual(due(journal, at: 1_000).map(\.isAsked), [true, true])
        var asked: Set<Int64> = []
        try journal.receiptStore()?.forEachAsked { asked.insert($0.row) }
        expectEqual(asked, [1, 2])
        try expectEqual(commands.receiptCensus(at: 1_000).due, 2)
    }

    @Test func `keys are listed by their risk metric`() throws {
        let commands = try KeyAdministration(path: folder.database, creates: true)
        var keys = (1...4).map { Self.key(UInt8($0)) }
        for (index, metric) in ([nil, 0, 8, 9] as [UInt32?]).enumerated() {
            keys[index].receiptState.riskMetric = metric
            keys[index].receiptState.metricAt = 1_000
        }
        let lines = keys.map { KeyLine.text($0) + "\n" }.joined()
        let file = try folder.write(lines, to: "keys.jsonl")
        try expectEqual(commands.importLines(from: file).inserted, 4)
        func listed(_ least: UInt32) throws -> Int {
            var filter = KeyFilter()
            filter.riskMin = least
            return try commands.scan(filter, after: nil, limit: 10).records.count
        }
        try expectEqual([0, 1, 8, 9, 10].map(listed), [3, 2, 2, 1, 0])
    }

    @Test func `a key's line carries what is known of its receipt, there and back`() throws {
        var key = Self.key(1)
        key.source = .imported
        key.receiptState = ReceiptState(createdAt: 1_000, expiresAt: 9_000)
        key.receiptState.notBefore = 2_000
        key.receiptState.riskMetric = 12
        key.receiptState.metricAt = 1_000
        key.receiptState.triedAt = 1_001
        key.receiptState.outcome = .renewed
        key.receiptState.dueAt = 3_000
        for outcome in [ReceiptState.Outcome.renewed, .gone] {
            key.receiptState.outcome = outcome
            if outcome == .gone { key.receiptState.dueAt = nil }
            let text = KeyLine.text(key)
            try expectEqual(KeyLine.record(Array(text.utf8).span), key)
        }
        for (member, text) in [
            ("risk_metric", "-1"), ("risk_metric", "4294967296"), ("risk_metric", "\"1\""),
            ("renewal_outcome", "\"lost\""), ("renewal_due_at", "5"),
            ("receipt_expires_at", "\"soon\""),
        ] {
            let line = KeyLine.text(Self.key(1)).dropLast() + ", \"\(member)\": \(text)}"
            #expect(throws: KeyLine.Problem.self, "\(member): \(text)") {
                try KeyLine.record(Array(line.utf8).span)
            }
        }
    }
}
