import AppAttest
import KeyStore
import TestSupport
import Testing

@Suite struct MemoryStoreTests {
    /// Memory that outlives its gateways; a crash loses nothing here.
    private final class Lab: StoreLab {
        private let journal = MemoryJournal()

        func open() -> any KeyJournal { journal }
        func crash() {}
        func revoke(_ keyID: KeyID, isRead: Bool) { #expect(journal.revoke(keyID, at: 1)) }
        func set(_ status: KeyRecord.Status, of keyID: KeyID) {
            #expect(journal.set(status, of: keyID))
        }
        func erase() { journal.erase() }
        func add(_ record: KeyRecord) { journal.add(record) }
        func stored(_ keyID: KeyID) -> KeyRecord? { journal.record(keyID) }
    }

    @Test(arguments: StoreContract.all(decided: .inMemory))
    func `the store in memory keeps the contract`(contract: StoreContract) throws {
        try contract.run(in: Lab())
    }
}
