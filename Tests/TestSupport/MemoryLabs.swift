package import AppAttest
package import KeyStore
import Testing

/// Memory that outlives its gateways; a crash loses nothing here.
package final class MemoryLab: StoreLab {
    private let journal = MemoryJournal()

    package init() {}

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

/// A store that decides at commit and outlives its gateways; a crash loses nothing here.
package final class DecidingLab: StoreLab {
    private let journal = DecidingJournal()

    package init() {}

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
