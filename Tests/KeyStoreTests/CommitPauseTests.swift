import AppAttest
import Dispatch
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
    private func enrol(_ seed: UInt8) -> Bool {
        let done = DispatchSemaphore(value: 0)
        let box = Box<Bool>()
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
        #expect(Int(table.committer.statistics.failures) == journal.batches.count)
        journal.fail(nil)
        // The longest pause is a second.
        #expect(eventually { enrol(201) })
        #expect(!table.committer.isDegraded)
    }
}
