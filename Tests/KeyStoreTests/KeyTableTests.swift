import AppAttest
import Cryptography
import KeyStore
import TestSupport
import Testing

@Suite struct KeyTableTests {
    @Test func `twenty thousand keys are found, and take at most 200 bytes each`() throws {
        let journal = MemoryJournal()
        let key = P256PrivateKey(seed: [1].span).publicKey
        let ids = (0..<20_000).map { KeyID(SHA256.digest(of: Array("\($0)".utf8))) }
        for id in ids {
            journal.add(
                KeyRecord(
                    keyID: id,
                    appID: "ABCDE12345.com.example.shop",
                    environment: .test,
                    publicKey: key,
                    enrolledAt: nil
                )
            )
        }
        let table = try KeyTable(journal: journal)
        #expect(table.count == ids.count)
        for id in ids {
            guard case .known(let stored) = table.find(id) else {
                Issue.record("a key is missing")
                return
            }
            #expect(stored.environment == .test)
        }
        #expect(table.octets / ids.count <= 200)
        guard case .unknown = table.find(KeyID(SHA256.digest(of: [1]))) else {
            Issue.record("a key that is not there is found")
            return
        }
    }

    @Test func `key ids that count up, as an import may bring them, are found as well`() throws {
        let journal = MemoryJournal()
        let key = P256PrivateKey(seed: [1].span).publicKey
        let ids = (0..<5_000).compactMap { number -> KeyID? in
            var octets = [UInt8](repeating: 0, count: 32)
            octets[30] = UInt8(number / 256)
            octets[31] = UInt8(number % 256)
            return KeyID(bytes: octets)
        }
        let table = try KeyTable(journal: journal)
        for id in ids {
            journal.add(
                KeyRecord(
                    keyID: id,
                    appID: "A.b",
                    environment: .production,
                    publicKey: key,
                    enrolledAt: nil
                )
            )
        }
        #expect(ids.allSatisfy { if case .known = table.find($0) { true } else { false } })
    }

    @Test func `revoked keys are counted once`() throws {
        let journal = MemoryJournal()
        journal.add(.sample(1))
        journal.add(.sample(2))
        #expect(journal.revoke(KeyRecord.sample(2).keyID, at: 5))
        let table = try KeyTable(journal: journal)
        #expect(table.revokedCount == 1)
        #expect(journal.revoke(KeyRecord.sample(1).keyID, at: 6))
        #expect(journal.revoke(KeyRecord.sample(1).keyID, at: 7))
        _ = table.find(KeyRecord.sample(1).keyID)
        #expect(table.revokedCount == 2)
        #expect(table.count == 2)
    }

    @Test func `numbers of environments are those on disk`() {
        #expect(KeyEnvironment.allCases.map(\.number) == [1, 2, 3])
        #expect(KeyEnvironment.allCases.map(\.rawValue) == ["production", "development", "test"])
        #expect(KeyEnvironment(number: 0) == nil)
        #expect(KeyEnvironment(number: 4) == nil)
    }
}
