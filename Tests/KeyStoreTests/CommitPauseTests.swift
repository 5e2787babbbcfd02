import AppAttest
import Dispatch
import Expectations
import KeyStore
import TestSupport
import Testing

@Suite struct CommitPauseTests {
    private let journal = FaultyJournal(MemoryJournal())
    private let table: KeyTable

    init() throws {
        var limits = Committer.Limits()
        limits.behindDelay = .seconds(3_600)
        limits.retryDelay = .seconds(3_600)
        table = try KeyTable(journal: journal, limits: limits)
    }

    /// Enrols a key; whether it was stored.
    private func enrol(_ seed: UInt8, in other: KeyTable? = nil) -> Bool {
        let done = DispatchSemaphore(value: 0)
        let box = Box<Bool>()
        let table = other ?? self.table
        table.enrol(.sample(seed)) { outcome in
            if case .inserted = outcome { box.set(true) } else { box.set(false) }
            done.signal()
        }
        done.wait()
        return box.value ?? false
    }

    @Test func `a disk that stays full is not tried for each request, and each is answered`() {
        journal.fail(.before(JournalError(.full, "test")))
        for number in 0..<400 { #expect(!enrol(UInt8(number % 200))) }
        #expect(journal.batches.count < 40)
        #expect(table.committer.isDegraded)
        expectEqual(Int(table.committer.statistics.failures), journal.batches.count)
        journal.fail(nil)
        // The longest pause is a second.
        #expect(eventually { enrol(201) })
        #expect(!table.committer.isDegraded)
    }

    @Test func `a store whose last try has failed is tried again without a request`() throws {
        var limits = Committer.Limits()
        limits.retryDelay = .milliseconds(1)
        let other = try KeyTable(journal: journal, limits: limits)
        journal.fail(.before(JournalError(.busy, "test")))
        // Nothing of it is left to be written. Where the gateway is not ready, no request comes.
        #expect(!enrol(1, in: other))
        #expect(other.committer.isDegraded)
        #expect(eventually { journal.batches.count > 2 })
        #expect(other.committer.isDegraded)
        journal.fail(nil)
        #expect(eventually { !other.committer.isDegraded })
        expectEqual(other.count, 0)
    }
}
