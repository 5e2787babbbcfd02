package import AppAttest
package import KeyStore
import Testing

/// A store in memory, and what other processes do to it.
package protocol JournalInMemory: KeyJournal {
    func revoke(_ keyID: KeyID, at second: Int64) -> Bool
    func set(_ status: KeyRecord.Status, of keyID: KeyID) -> Bool
    func erase()
    func add(_ record: KeyRecord)
    func record(_ keyID: KeyID) -> KeyRecord?
}

extension MemoryJournal: JournalInMemory {}
extension DecidingJournal: JournalInMemory {}

/// Memory that outlives its gateways; a crash loses nothing here.
package final class MemoryLab: StoreLab {
    private let journal: any JournalInMemory

    package init(_ journal: any JournalInMemory = MemoryJournal()) { self.journal = journal }

    package func open() -> any KeyJournal { journal }
    package func crash() {}
    package func revoke(_ keyID: KeyID, isRead: Bool) { #expect(journal.revoke(keyID, at: 1)) }
    package func set(_ status: KeyRecord.Status, of keyID: KeyID) {
        #expect(journal.set(status, of: keyID))
    }
    package func erase() { journal.erase() }
    package func add(_ record: KeyRecord) { journal.add(record) }
    package func stored(_ keyID: KeyID) -> KeyRecord? { journal.record(keyID) }
}
