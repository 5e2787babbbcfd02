import KeyStore
import TestSupport
import Testing

@Suite struct MemoryStoreTests {
    @Test(arguments: StoreContract.all(decided: .inMemory))
    func `the store in memory keeps the contract`(contract: StoreContract) throws {
        try contract.run(in: MemoryLab())
    }
}
