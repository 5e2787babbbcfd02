import AppAttest
import Dispatch
import Expectations
import KeyStore
import Testing

extension StoreContract {
    /// What is left of a deleted key, and what it is good for.
    static let erasures = [
        StoreContract("an erased key is unknown, and is never enrolled anew") { (bench) throws in
            var key = KeyRecord.sample(1)
            key.context = [1, 2]
            let other = KeyRecord.sample(2)
            try bench.enrol(key)
            try bench.enrol(other)
            expectEqual(bench.use(key.keyID, 5), .admitted)
            try bench.lab.set(.deleted(at: 9), of: key.keyID)
            try bench.lab.erase()
            for _ in 0..<2 {
                bench.meet(key.keyID)
                guard case .unknown = bench.table.find(key.keyID) else {
                    throw Unexpected("an erased key is known")
                }
                expectEqual(bench.use(key.keyID, 6), .refused(.unknown))
                // Its counter would begin at zero.
                try expectEqual(bench.enrol(key), .revoked)
                expectEqual(bench.use(key.keyID, 6), .refused(.unknown))
                try bench.restart()
            }
            let left = try #require(try bench.lab.stored(key.keyID))
            guard case .erased(at: 9, under: let secret) = left.status else {
                throw Unexpected("\(left.status)")
            }
            expectEqual(left, .erased(secret.mark(of: key.keyID), under: secret, at: 9))
            #expect(left.keyID != key.keyID && left.publicKey != key.publicKey)
            // Erasing again changes nothing, and no other key was touched.
            try bench.lab.erase()
            try expectEqual(bench.lab.stored(key.keyID), left)
            expectEqual(bench.use(other.keyID, 1), .admitted)
        },
        StoreContract("a counter that comes after the erasure leaves no trace") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            let row = try #require(try bench.known(key.keyID).row)
            try bench.lab.set(.deleted(at: 9), of: key.keyID)
            try bench.lab.erase()
            let late = CounterChange(
                row: row,
                counters: CounterState(highest: SignCounter(rawValue: 7)),
                usedAt: 5
            )
            _ = try bench.journal.commit(JournalBatch(changes: [late]))
            try bench.restart()
            let left = try #require(try bench.lab.stored(key.keyID))
            expectEqual(left.counters, CounterState())
            expectEqual(left.lastUsedAt, nil)
        },
        StoreContract(
            "a gateway that reads a deletion after the erasure ends the key",
            decided: .atCommit
        ) { (bench) throws in
            let (key, other) = (KeyRecord.sample(1), KeyRecord.sample(2))
            try bench.enrol(key)
            try bench.enrol(other)
            // The neighbour alone hears of changes.
            let neighbour = try bench.neighbour()
            try bench.lab.set(.deleted(at: 9), of: key.keyID)
            try bench.lab.erase()
            _ = try bench.known(key.keyID)
            expectEqual(bench.table.refresh(), nil)
            bench.meet(key.keyID)
            guard case .unknown = bench.table.find(key.keyID) else {
                throw Unexpected("an erased key is known")
            }
            _ = try bench.known(other.keyID)
            expectEqual(bench.table.count, 1)
            expectEqual(neighbour.use(key.keyID, 1), .refused(.unknown))
        },
        StoreContract(
            "a key that is erased before its enrolment is answered is unknown",
            decided: .atCommit
        ) { (bench) throws in
            let key = KeyRecord.sample(1)
            _ = try bench.neighbour()
            let gate = bench.journal.holdUpAnswer()
            let done = DispatchSemaphore(value: 0)
            bench.table.enrol(key) { _ in done.signal() }
            gate.entered.wait()
            try bench.lab.set(.deleted(at: 9), of: key.keyID)
            try bench.lab.erase()
            expectEqual(bench.table.refresh(), nil)
            gate.open.signal()
            done.wait()
            try bench.table.committer.flush()
            if case .known = bench.table.find(key.keyID) {
                throw Unexpected("an erased key is known")
            }
            expectEqual(bench.table.count, 0)
        },
    ]
}
