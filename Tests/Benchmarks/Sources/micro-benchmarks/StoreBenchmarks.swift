import AppAttest
import Cryptography
import KeyStore
import SoftwareAuthenticator
import Tokens

/// Counters consumed in tables of different sizes. The journal is in memory: writing has a thread
/// of its own and is no part of it.
enum StoreBenchmarks {
    static var all: [() -> [Benchmark]] { [{ consuming(1_000) }, { consuming(1_000_000) }] }

    private static let appID = "TEAM123456.com.example.bench"
    private static let now: Int64 = 1_790_000_000
    /// Operations in a batch; each uses another key, as far as there are so many.
    private static let countMax = 10_000

    /// A table with so many keys and one more.
    static func table(of count: Int, with key: SoftwareKey, _ appID: String) -> KeyTable {
        let journal = MemoryJournal()
        func add(_ keyID: KeyID) {
            journal.add(
                KeyRecord(
                    keyID: keyID,
                    appID: appID,
                    environment: .production,
                    publicKey: key.publicKey,
                    enrolledAt: now
                )
            )
        }
        for number in 0..<count { add(keyID(number)) }
        add(key.keyID)
        do throws(JournalError) {
            return try KeyTable(journal: journal)
        } catch {
            preconditionFailure("StoreBenchmarks: \(error)")
        }
    }

    /// The id of a number, the same every time, spread as ids are.
    private static func keyID(_ number: Int) -> KeyID {
        var seed: [UInt8] = []
        for shift in 0..<8 { seed.append(UInt8(truncatingIfNeeded: number >> (shift * 8))) }
        return KeyID(SHA256.digest(of: seed))
    }

    private static func consuming(_ count: Int) -> [Benchmark] {
        let keys = table(of: count, with: ProofBenchmarks.makeKey(.beforeTwentySeven), appID)
        let issuer = ChallengeIssuer()
        // Spread over the whole table, so that neighbours in time are none in memory.
        let used = (0..<countMax).map { keyID($0 &* 7_919 % count) }
        var counter: UInt32 = 0
        return [
            Benchmark(
                group: "store",
                name: "counter consumed among \(count) keys",
                countMax: countMax,
                prepare: { _ in flush(keys) },
                run: { number in
                    counter += 1
                    let outcome = keys.consume(
                        CounterUse(
                            of: used[number],
                            counter: SignCounter(rawValue: counter),
                            rule: .strict,
                            challenge: nil
                        ),
                        issuer: issuer,
                        now: now,
                        durability: .behind
                    )
                    return outcome == .decided(.admitted)
                }
            )
        ]
    }

    private static func flush(_ keys: KeyTable) {
        do throws(JournalError) {
            try keys.committer.flush()
        } catch {
            preconditionFailure("StoreBenchmarks: \(error)")
        }
    }
}
