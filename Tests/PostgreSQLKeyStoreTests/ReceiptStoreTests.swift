import AppAttest
import Dispatch
import Expectations
import KeyStore
import LoopbackKit
import Synchronization
import TestSupport
import Testing

@testable import PostgreSQLKeyStore

/// What one gateway does for all of them.
@Suite struct ReceiptStoreTests {
    private let settings: PostgreSQLSettings

    init() throws { settings = try DatabaseServer.shared.get().makeStore() }

    private static func keys(_ count: UInt8) -> [KeyRecord] {
        (1...count).map { number in
            var key = KeyRecord.sample(number)
            key.receipt = [number]
            key.receiptState.dueAt = Int64(number % 3)
            return key
        }
    }

    @Test func `of gateways that look at the same receipts each receipt is one's`() throws {
        let keys = Self.keys(20)
        let journals = try (0..<4).map { _ in try PostgreSQLKeyJournal(settings, clock: { 0 }) }
        _ = try journals[0].commit(JournalBatch(enrolments: keys))
        let taken = Mutex<[KeptReceipt]>([])
        let faults = Mutex<[any Error]>([])
        DispatchQueue.concurrentPerform(iterations: journals.count) { gateway in
            do {
                let receipts = try #require(journals[gateway].receiptStore())
                var due: [DueReceipt] = []
                try receipts.forEachDue(at: 5) { due.append($0) }
                expectEqual(due.count, 20)
                expectEqual(due.map(\.dueAt), due.map(\.dueAt).sorted())
                for one in due {
                    guard let kept = try receipts.receipt(ofRow: one.row) else { continue }
                    taken.withLock { $0.append(kept) }
                }
            } catch {
                faults.withLock { $0.append(error) }
            }
        }
        expectEqual(faults.withLock { $0.count }, 0)
        let all = taken.withLock { $0 }
        expectEqual(all.count, 20)
        expectEqual(Set(all.map(\.keyID)), Set(keys.map(\.keyID)))
        for kept in all {
            expectEqual(kept.receipt, keys.first { $0.keyID == kept.keyID }?.receipt)
        }
        try expectEqual(journals[0].receiptStore()?.census(at: 5).due, 20)
    }

    @Test func `a receipt of a gateway that is gone is another's when the lease ends`() throws {
        let journals = try (0..<2).map { _ in try PostgreSQLKeyJournal(settings, clock: { 0 }) }
        let stored = try journals[0].commit(JournalBatch(enrolments: Self.keys(1))).enrolments
        let row = try #require(stored[0]).key.row
        func take(_ gateway: Int) throws -> Bool {
            try journals[gateway].receiptStore()?.receipt(ofRow: row) != nil
        }
        #expect(try take(0))
        #expect(try !take(1))
        // The one that has it may try again.
        #expect(try take(0))
        _ = try DatabaseLink(settings).ask([
            DatabaseStatement("UPDATE renewals SET leased_until = 0")
        ])
        #expect(try take(1))
        #expect(try !take(0))
    }

    @Test func `a metric that one gateway has got is read by the others`() throws {
        let journals = try (0..<2).map { _ in try PostgreSQLKeyJournal(settings, clock: { 0 }) }
        let stored = try journals[0].commit(JournalBatch(enrolments: Self.keys(1))).enrolments
        let key = try #require(stored[0]).key
        let table = try KeyTable(journal: journals[1])
        var state = ReceiptState(createdAt: 2_000_000, expiresAt: nil)
        (state.riskMetric, state.metricAt) = (7, 2_000_000)
        let change = ReceiptChange(row: key.row, keyID: key.keyID, receipt: [2], state: state)
        _ = try journals[0].commit(JournalBatch(receipts: [change]))
        try #require(journals[0].receiptStore()).announce([key.row])
        expectEqual(table.refresh(), nil)
        guard case .known(let known) = table.find(key.keyID) else {
            Issue.record("the key is missing")
            return
        }
        expectEqual(known.risk.metric, 7)
        try table.close()
        journals[0].close()
    }

    @Test func `one gateway at a time has a duty, until its lease ends`() throws {
        let archive = try PostgreSQLKeyArchive(settings)
        let holders = Mutex<[Int64]>([])
        DispatchQueue.concurrentPerform(iterations: 6) { number in
            let holder = Int64(number + 1)
            let has = try? PostgreSQLKeyArchive(settings).lease("expiry", to: holder, seconds: 60)
            if has == true { holders.withLock { $0.append(holder) } }
        }
        let first = try #require(holders.withLock { $0.first })
        expectEqual(holders.withLock { $0.count }, 1)
        #expect(try archive.lease("expiry", to: first, seconds: 60))
        #expect(try !archive.lease("expiry", to: 99, seconds: 60))
        #expect(try archive.lease("other", to: 99, seconds: 60))
        #expect(try archive.lease("expiry", to: first, seconds: 0))
        #expect(try archive.lease("expiry", to: 99, seconds: 60))
    }
}
