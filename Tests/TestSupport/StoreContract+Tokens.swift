import AppAttest
import Dispatch
import Expectations
import KeyStore
import Signatures
import Synchronization
import Testing

extension StoreContract {
    /// Tokens of other issuers that are good once.
    static let tokens = [
        StoreContract("a token is fresh once, also after a crash") { (bench) throws in
            expectEqual(bench.spend(1), .fresh)
            expectEqual(bench.spend(1), .spent)
            try bench.restart(crash: true)
            expectEqual(bench.spend(1), .spent)
            expectEqual(bench.spend(2), .fresh)
            try bench.restart()
            expectEqual(bench.spend(2), .spent)
        },
        StoreContract("of many equal tokens at once one is fresh") { (bench) throws in
            for number in UInt8(1)...5 {
                let outcomes = bench.spend([number, number, number, number + 100, number])
                expectEqual(outcomes.filter { $0 == .fresh }.count, 2)
                expectEqual(outcomes.filter { $0 == .spent }.count, 3)
            }
        },
        StoreContract("of two gateways that spend one token one is told that it is fresh") {
            (bench) throws in
            guard bench.journal.decides == .atCommit else { return }
            let other = try bench.neighbour()
            for number in UInt8(1)...10 {
                expectEqual(bench.spend(number), .fresh)
                expectEqual(other.spend(number), .spent)
                expectEqual(other.spend(number + 100), .fresh)
                expectEqual(bench.spend(number + 100), .spent)
            }
        },
        StoreContract("a token whose commit failed is not fresh") { (bench) throws in
            bench.journal.fail(.before(JournalError(.unusable, "test")))
            expectEqual(bench.spend(1), .failed)
            bench.journal.fail(nil)
            expectEqual(bench.spend(1), .fresh)
        },
    ]
}

extension StoreContract.Bench {
    fileprivate func spend(_ number: UInt8) -> SpendOutcome { spend([number])[0] }

    /// Spends tokens at once, and waits for all.
    fileprivate func spend(_ numbers: [UInt8]) -> [SpendOutcome] {
        spendAll(numbers, by: table)
    }
}

private func spendAll(_ numbers: [UInt8], by table: KeyTable) -> [SpendOutcome] {
    let outcomes = Mutex([SpendOutcome](repeating: .failed, count: numbers.count))
    let group = DispatchGroup()
    for (place, number) in numbers.enumerated() {
        guard let digest = SHA256Digest(bytes: [UInt8](repeating: number, count: 32)) else {
            continue
        }
        group.enter()
        table.spend(SpentToken(digest, end: 4_000_000_000)) { outcome in
            outcomes.withLock { $0[place] = outcome }
            group.leave()
        }
    }
    expectEqual(group.wait(timeout: .now() + 30), .success)
    return outcomes.withLock { $0 }
}
