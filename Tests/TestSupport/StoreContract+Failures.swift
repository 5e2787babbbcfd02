import AppAttest
import Dispatch
import Expectations
import KeyStore
import Testing

extension StoreContract {
    static let failures = [
        StoreContract("a commit that fails is told to exactly those it concerns") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            let one = try bench.ticket(key.keyID, 1)
            try bench.table.committer.flush()
            bench.journal.fail(.before(JournalError(.full, "test")))
            let two = try bench.ticket(key.keyID, 2)
            let three = try bench.ticket(key.keyID, 3)
            #expect(throws: JournalError(.full, "")) { try bench.table.committer.flush() }
            bench.journal.fail(nil)
            let four = try bench.ticket(key.keyID, 4)
            try bench.table.committer.flush()
            let decisions = [one, two, three, four].map(bench.log.decision(of:))
            expectEqual(decisions, [.admitted, .unassured, .unassured, .admitted])
        },
        StoreContract("a failed write is seen, kept, and made up for") { (bench) throws in
            let key = KeyRecord.sample(1)
            let other = KeyRecord.sample(2)
            try bench.enrol(key)
            try bench.enrol(other)
            bench.journal.fail(.before(JournalError(.unusable, "test")))
            #expect(bench.consume(key.keyID, 7).isTaken)
            #expect(throws: JournalError.self) { try bench.table.committer.flush() }
            #expect(bench.table.committer.isDegraded)
            var statistics = bench.table.committer.statistics
            expectEqual(statistics.failures, 1)
            expectEqual(statistics.lastError, JournalError(.unusable, ""))
            expectEqual(statistics.depth, 1)
            expectEqual(bench.use(key.keyID, 7), .refused(.replayed))
            try expectEqual(bench.storedCounter(key.keyID), 0)

            bench.journal.fail(nil)
            expectEqual(bench.use(other.keyID, 1), .admitted)
            try bench.table.committer.flush()
            #expect(!bench.table.committer.isDegraded)
            statistics = bench.table.committer.statistics
            expectEqual(statistics.depth, 0)
            try expectEqual(bench.storedCounter(key.keyID), 7)
            try expectEqual(bench.storedCounter(other.keyID), 1)
        },
        StoreContract("new work is tried at once after a failure, and old values follow") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            let other = KeyRecord.sample(2)
            try bench.enrol(key)
            try bench.enrol(other)
            bench.journal.fail(.before(JournalError(.busy, "test")))
            #expect(bench.consume(key.keyID, 7).isTaken)
            #expect(throws: JournalError.self) { try bench.table.committer.flush() }
            bench.journal.fail(nil)
            let before = bench.journal.batches.count
            // No timer runs here: the awaited change alone brings the writer back.
            try bench.enrol(.sample(3))
            try bench.table.committer.flush()
            let batches = bench.journal.batches.dropFirst(before)
            expectEqual(batches.first?.enrolments.count, 1)
            expectEqual(batches.first?.changes.isEmpty, true)
            expectEqual(batches.dropFirst().first?.changes.count, 1)
            try expectEqual(bench.storedCounter(key.keyID), 7)
        },
        StoreContract(
            "a use that finds no room to be decided is never admitted",
            decided: .atCommit
        ) {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            try bench.restart { $0.usesMax = 1 }
            // The one place is taken, and there is room for changes.
            let first = try bench.ticket(key.keyID, 1)
            expectEqual(bench.consume(key.keyID, 2), .decided(.unavailable))
            for durability in [Durability.awaited, .behind] {
                let counter: UInt32 = durability == .awaited ? 3 : 4
                let outcome = bench.consume(
                    key.keyID,
                    counter,
                    durability: durability,
                    whenFailing: .useInMemory
                )
                expectEqual(outcome, .decided(.unassured))
                expectEqual(
                    bench.insist(key.keyID, counter),
                    .refused(.replayed),
                    "used in memory, so that it is good once here"
                )
            }
            try bench.table.committer.flush()
            expectEqual(bench.log.decision(of: first), .refused(.replayed))
            try expectEqual(bench.storedCounter(key.keyID), 4)
        },
        StoreContract(
            "a use has its answer in time, whatever holds the writer up",
            decided: .atCommit
        ) {
            (bench) throws in
            let (key, other) = (KeyRecord.sample(1), KeyRecord.sample(2))
            try bench.enrol(key)
            try bench.enrol(other)
            try bench.restart { $0.answerTime = .milliseconds(50) }
            let gate = bench.journal.holdUp()
            let written = try bench.ticket(key.keyID, 1)
            bench.table.kick()
            gate.entered.wait()
            let waiting = try bench.ticket(other.keyID, 1)
            let sought = bench.table.lookUp(KeyRecord.sample(3).keyID)
            bench.table.kick()
            // The journal stands still until all have their answers.
            eventually { sought.map { bench.log.decision(of: $0) != nil } ?? false }
            expectEqual(bench.log.decision(of: written), .unassured)
            expectEqual(bench.log.decision(of: waiting), .unassured)
            expectEqual(sought.flatMap { bench.log.decision(of: $0) }, .unavailable)
            #expect(bench.table.committer.isDegraded)
            // Used in memory: good once here, whatever the journal answers later.
            for keyID in [key.keyID, other.keyID] {
                expectEqual(bench.insist(keyID, 1), .refused(.replayed))
            }
            gate.open.signal()
            try bench.table.committer.flush()
            try expectEqual(bench.storedCounter(key.keyID), 1)
            try expectEqual(bench.storedCounter(other.keyID), 1)
            #expect(!bench.table.committer.isDegraded)
        },
        StoreContract("many failures keep the newest values only, and the limit holds") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            let other = KeyRecord.sample(2)
            try bench.enrol(key)
            try bench.enrol(other)
            try bench.restart { $0.changesMax = 2 }
            bench.journal.fail(.before(JournalError(.full, "test")))
            for counter in UInt32(1)...5 {
                #expect(bench.consume(key.keyID, counter).isTaken)
                #expect(throws: JournalError.self) { try bench.table.committer.flush() }
            }
            expectEqual(bench.table.committer.statistics.depth, 1)
            #expect(bench.consume(other.keyID, 1).isTaken)
            #expect(throws: JournalError.self) { try bench.table.committer.flush() }
            expectEqual(bench.use(key.keyID, 6), .unavailable)
            bench.journal.fail(nil)
            try bench.table.committer.flush()
            expectEqual(bench.use(key.keyID, 6), .admitted)
            try bench.table.committer.flush()
            try expectEqual(bench.storedCounter(key.keyID), 6)
        },
        StoreContract("a commit that reached the disk and was taken for failed does no harm") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            bench.journal.fail(.after(JournalError(.unusable, "test")))
            let ticket = try bench.ticket(key.keyID, 7)
            #expect(throws: JournalError.self) { try bench.table.committer.flush() }
            bench.journal.fail(nil)
            expectEqual(bench.use(key.keyID, 9), .admitted)
            try bench.table.committer.flush()
            expectEqual(bench.log.decision(of: ticket), .unassured)
            try expectEqual(bench.storedCounter(key.keyID), 9)
            expectEqual(bench.use(key.keyID, 8, .window(8)), .admitted)
        },
    ]

    static let crashes = [
        StoreContract("after a crash every key that was enrolled is there") { (bench) throws in
            let keys = (1...20).map { KeyRecord.sample($0) }
            for key in keys { try expectEqual(bench.enrol(key), .inserted(key.keyID)) }
            try bench.restart(crash: true)
            for key in keys { try expectEqual(bench.known(key.keyID).publicKey, key.publicKey) }
        },
        StoreContract("after a crash every counter that was committed is used") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            for counter in [UInt32(3), 9, 7] {
                expectEqual(bench.use(key.keyID, counter, .window(64)), .admitted)
                try bench.table.committer.flush()
            }
            try bench.restart(crash: true)
            for counter in [UInt32(3), 7, 9] {
                expectEqual(bench.use(key.keyID, counter, .window(64)), .refused(.replayed))
            }
            expectEqual(bench.use(key.keyID, 8, .window(64)), .admitted)
        },
        StoreContract("after a crash a revoked key is revoked and an imported one there") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            try bench.lab.revoke(key.keyID)
            try bench.lab.add(.sample(2, counter: 5))
            try bench.restart(crash: true)
            expectEqual(bench.use(key.keyID, 1), .refused(.revoked))
            expectEqual(bench.use(KeyRecord.sample(2).keyID, 5), .refused(.replayed))
        },
    ]
}
