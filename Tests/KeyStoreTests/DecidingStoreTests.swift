import KeyStore
import TestSupport
import Testing

@Suite struct DecidingStoreTests {
    @Test(arguments: StoreContract.all(decided: .atCommit))
    func `a store that decides at commit keeps the contract`(contract: StoreContract) throws {
        try contract.run(in: MemoryLab(DecidingJournal()))
    }
}
