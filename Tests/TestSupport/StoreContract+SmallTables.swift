import AppAttest
import Cryptography
import Dispatch
import Expectations
package import KeyStore
import Testing

/// A table that holds fewer keys than the store.
extension StoreContract {
    static let smallTables = [
        StoreContract(
            "a table of a hundred keys serves two thousand, each counter once",
            decided: .atCommit
        ) { (bench) throws in
            let records = KeyRecord.crowd(2_000)
            try bench.add(records)
            let small = try bench.neighbour(keysMax: 100)
            var generator = SeededGenerator(seed: 1)
            var highest: [KeyID: UInt32] = [:]
            var revoked: Set<KeyID> = []
            for round in 0..<2_500 {
                let keyID = try #require(records.randomElement(using: &generator)).keyID
                let before = highest[keyID, default: 0]
                // Now and then a counter that was used already, maybe before the key left.
                let counter = round % 5 == 0 && before > 0 ? before : before + 1
                let decision = small.use(keyID, counter)
                if revoked.contains(keyID) {
                    expectEqual(decision, .refused(.revoked))
                } else if counter == before {
                    expectEqual(decision, .refused(.replayed))
                } else {
                    expectEqual(decision, .admitted)
                    highest[keyID] = counter
                }
                if round % 100 == 7, !revoked.contains(keyID) {
                    try bench.lab.revoke(keyID, isRead: false)
                    revoked.insert(keyID)
                }
                // Two for each of the table's 64 shards.
                #expect(small.table.count <= 128)
            }
            #expect(revoked.count > 20)
            #expect(small.table.revokedCount <= revoked.count)
            for (keyID, counter) in highest.prefix(50) {
                try expectEqual(bench.storedCounter(keyID), counter)
            }
        },
        StoreContract(
            "a key that leaves the table while its use waits is used all the same",
            decided: .atCommit
        ) { (bench) throws in
            let records = KeyRecord.crowd(1_500)
            try bench.add(records)
            let small = try bench.neighbour(keysMax: 64)
            let waiting = records[0].keyID
            small.meet(waiting)
            // The next batch has so many look-ups that the key must go, and the one behind it has
            // the use.
            let gate = small.journal.holdUp()
            for record in records.dropFirst() { _ = small.table.lookUp(record.keyID) }
            small.table.kick()
            gate.entered.wait()
            let ticket = try small.ticket(waiting, 7)
            gate.open.signal()
            try small.table.committer.flush()
            expectEqual(small.log.decision(of: ticket), .admitted)
            guard case .absent = small.table.find(waiting) else {
                throw Unexpected("the key is here still")
            }
            expectEqual(small.use(waiting, 7), .refused(.replayed))
            expectEqual(small.use(waiting, 8), .admitted)
        },
        StoreContract(
            "a key that was asked for stays until it is used, though all others are in use",
            decided: .atCommit
        ) { (bench) throws in
            let records = KeyRecord.crowd(3_200)
            try bench.add(records)
            let small = try bench.neighbour(keysMax: 1_024)
            func ask(_ records: some Sequence<KeyRecord>) throws {
                for record in records { _ = small.table.lookUp(record.keyID) }
                try small.table.committer.flush()
            }
            func found(_ records: some Sequence<KeyRecord>) -> [KeyRecord] {
                records.filter {
                    if case .known = small.table.find($0.keyID) { true } else { false }
                }
            }
            try ask(records.prefix(3_000))
            let old = found(records.prefix(3_000))
            let asked = records[3_000..<3_100]
            try ask(asked)
            #expect(found(old).count > 800)
            try ask(records.suffix(100))
            expectEqual(found(asked).count, asked.count)
        },
        StoreContract(
            "a key that is revoked while it is looked up for a full table is known as revoked",
            decided: .atCommit
        ) { (bench) throws in
            let records = KeyRecord.crowd(1_500)
            try bench.add(records)
            let small = try bench.neighbour(keysMax: 64)
            for record in records.dropFirst() { _ = small.table.lookUp(record.keyID) }
            try small.table.committer.flush()
            let keyID = records[0].keyID
            let gate = small.journal.holdUpAnswer()
            _ = small.table.lookUp(keyID)
            small.table.kick()
            gate.entered.wait()
            try bench.lab.revoke(keyID)
            gate.open.signal()
            try small.table.committer.flush()
            #expect(try small.known(keyID).isRevoked)
        },
        StoreContract(
            "a key that leaves the table before its use is used all the same",
            decided: .atCommit
        ) { (bench) throws in
            let records = KeyRecord.crowd(1_500)
            try bench.add(records)
            let small = try bench.neighbour(keysMax: 64)
            let (found, revoked) = (records[0].keyID, records[1].keyID)
            var rows: [KeyID: Int64] = [:]
            for keyID in [found, revoked] {
                small.meet(keyID)
                guard case .known(let key) = small.table.find(keyID) else {
                    throw Unexpected("the key is not here")
                }
                rows[keyID] = key.row
            }
            for record in records.dropFirst(2) { _ = small.table.lookUp(record.keyID) }
            try small.table.committer.flush()
            try bench.lab.revoke(revoked, isRead: false)
            func use(_ keyID: KeyID, _ counter: UInt32, knowsRow: Bool = true) -> ConsumeDecision {
                let row = knowsRow ? rows[keyID] : nil
                guard case .absent = small.table.find(keyID) else {
                    Issue.record("the key is here still")
                    return .unavailable
                }
                return small.decision(small.consume(keyID, row: row, counter))
            }
            expectEqual(use(found, 7, knowsRow: false), .unavailable)
            expectEqual(use(found, 7), .admitted)
            expectEqual(use(found, 7), .refused(.replayed))
            expectEqual(use(revoked, 1), .refused(.revoked))
            try expectEqual(bench.storedCounter(found), 7)
        },
    ]
}

extension StoreContract.Bench {
    /// Enrols keys past the table, some at once.
    fileprivate func add(_ records: [KeyRecord]) throws {
        for start in stride(from: 0, to: records.count, by: 250) {
            let piece = Array(records[start..<min(start + 250, records.count)])
            _ = try journal.commit(JournalBatch(enrolments: piece))
        }
    }
}

extension KeyRecord {
    /// Keys of one public key, since a test verifies nothing.
    package static func crowd(_ count: Int) -> [KeyRecord] {
        let sample = KeyRecord.sample(1)
        return (0..<count).map { number in
            var record = sample
            record.keyID = KeyID(SHA256.digest(of: Array("crowd \(number)".utf8)))
            record.receipt = nil
            return record
        }
    }
}
