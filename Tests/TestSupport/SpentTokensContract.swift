import Cryptography
import Expectations
package import KeyStore
import Synchronization
import Testing

/// What every store promises of spent tokens where its keys are copied into another store.
package enum SpentTokensContract {
    /// Spends tokens in one store, and copies that one into another.
    /// `first` and `second` are tables of gateways on the source and on the target.
    package static func check(
        from source: some KeyArchive,
        _ first: KeyTable,
        to target: some KeyArchive,
        _ second: KeyTable
    ) throws {
        // More than a page of a copy.
        let tokens = (0..<1_100).map { number in
            SpentToken(SHA256.digest(of: Array("\(number)".utf8)), end: 4_000_000_000)
        }
        let late = SpentToken(SHA256.digest(of: [0]), end: 4_000_000_000)
        #expect(try spend(tokens, by: first).allSatisfy { $0 == .fresh })
        _ = try source.copy(to: .store(target))
        #expect(try spend(tokens, by: second).allSatisfy { $0 == .spent })
        try expectEqual(spend([late], by: second), [.fresh])
        try first.close()
        try second.close()
    }

    package static func spend(
        _ tokens: [SpentToken],
        by table: KeyTable
    ) throws -> [SpendOutcome] {
        let outcomes = Mutex([SpendOutcome](repeating: .failed, count: tokens.count))
        for (place, token) in tokens.enumerated() {
            table.spend(token) { outcome in outcomes.withLock { $0[place] = outcome } }
        }
        try table.committer.flush()
        return outcomes.withLock { $0 }
    }
}
