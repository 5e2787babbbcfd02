import AppAttest
import Dispatch
import Expectations
import KeyStore
import Testing

extension StoreContract {
    static let otherProcesses = [
        StoreContract("a key that another process revokes is refused at the next look") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            expectEqual(bench.use(key.keyID, 1), .admitted)
            try bench.lab.revoke(key.keyID)
            expectEqual(bench.use(key.keyID, 2), .refused(.revoked))
            #expect(try bench.known(key.keyID).isRevoked)
            try expectEqual(bench.enrol(key), .revoked)
            try bench.restart()
            expectEqual(bench.use(key.keyID, 3), .refused(.revoked))
        },
        StoreContract("a look ahead sees a revocation too") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            try bench.lab.revoke(key.keyID)
            expectEqual(bench.peek(key.keyID, 2), .refused(.revoked))
        },
        StoreContract("a restored key is good again, with the counter that it had") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            expectEqual(bench.use(key.keyID, 5), .admitted)
            try bench.lab.revoke(key.keyID)
            expectEqual(bench.use(key.keyID, 6), .refused(.revoked))
            expectEqual(bench.table.revokedCount, 1)
            try bench.lab.set(.active, of: key.keyID)
            expectEqual(bench.table.revokedCount, 0)
            expectEqual(bench.use(key.keyID, 5), .refused(.replayed))
            expectEqual(bench.use(key.keyID, 6), .admitted)
            try expectEqual(bench.enrol(key), .existing(key.keyID))
            try bench.restart()
            expectEqual(bench.use(key.keyID, 6), .refused(.replayed))
            expectEqual(bench.use(key.keyID, 7), .admitted)
        },
        StoreContract("a key that is deleted before its enrolment is answered is unknown") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            let gate = bench.journal.holdUpAnswer()
            let done = DispatchSemaphore(value: 0)
            bench.table.enrol(key) { _ in done.signal() }
            gate.entered.wait()
            try bench.lab.set(.deleted(at: 9), of: key.keyID)
            gate.open.signal()
            done.wait()
            try bench.table.committer.flush()
            if case .known = bench.table.find(key.keyID) {
                throw Unexpected("a deleted key is known")
            }
            expectEqual(bench.use(key.keyID, 1), .refused(.unknown))
        },
        StoreContract("a deleted key is unknown, and is never enrolled anew") { (bench) throws in
            var key = KeyRecord.sample(1)
            key.context = [1, 2]
            try bench.enrol(key)
            expectEqual(bench.use(key.keyID, 5), .admitted)
            try bench.lab.set(.deleted(at: 9), of: key.keyID)
            for _ in 0..<2 {
                bench.meet(key.keyID)
                guard case .unknown = bench.table.find(key.keyID) else {
                    throw Unexpected("a deleted key is known")
                }
                expectEqual(bench.peek(key.keyID, 6), .refused(.unknown))
                expectEqual(bench.use(key.keyID, 6), .refused(.unknown))
                expectEqual(
                    bench.use(key.keyID, nil, challenge: try bench.challenge()),
                    .refused(.unknown)
                )
                expectEqual(bench.table.count, 0)
                // Its counter would begin at zero.
                try expectEqual(bench.enrol(key), .revoked)
                expectEqual(bench.use(key.keyID, 6), .refused(.unknown))
                try bench.restart()
            }
            try expectEqual(bench.lab.stored(key.keyID)?.status.standing, .deleted)
        },
        StoreContract("a key that another process imports is known at the next look") {
            (bench) throws in
            let key = KeyRecord.sample(2, counter: 7)
            expectEqual(bench.use(key.keyID, 8), .refused(.unknown))
            try bench.lab.add(key)
            expectEqual(bench.use(key.keyID, 7), .refused(.replayed))
            expectEqual(bench.use(key.keyID, 8), .admitted)
        },
        StoreContract("a counter that another process raises is raised here, never lowered") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            expectEqual(bench.use(key.keyID, 50), .admitted)
            try bench.lab.add(.sample(1, counter: 40))
            try expectEqual(bench.known(key.keyID).counter.rawValue, 50)
            expectEqual(bench.use(key.keyID, 45), .refused(.replayed))
            try bench.lab.add(.sample(1, counter: 60))
            expectEqual(bench.use(key.keyID, 60), .refused(.replayed))
            expectEqual(bench.use(key.keyID, 61), .admitted)
            try bench.restart()
            try expectEqual(bench.known(key.keyID).counter.rawValue, 61)
        },
        StoreContract("while changes can't be read nobody is admitted but who asks for it") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            expectEqual(bench.use(key.keyID, 1), .admitted)
            bench.journal.failChanges(JournalError(.unusable, "test"))
            expectEqual(bench.table.readFault, JournalError(.unusable, ""))
            try bench.lab.revoke(key.keyID, isRead: false)
            expectEqual(bench.use(key.keyID, 2), .unavailable)
            expectEqual(bench.peek(key.keyID, 2), .unavailable)
            guard case .outdated = bench.table.find(key.keyID) else {
                throw Unexpected("the table answers as ever")
            }
            let stranger = KeyRecord.sample(2).keyID
            guard case .unavailable = bench.table.find(stranger) else {
                throw Unexpected("the table answers for a key that it lacks")
            }
            expectEqual(bench.use(stranger, 1), .unavailable)
            expectEqual(bench.insist(stranger, 1), .unavailable)
            expectEqual(bench.insist(key.keyID, 1), .refused(.replayed))
            let challenge = try bench.challenge()
            expectEqual(bench.insist(key.keyID, 2, challenge: challenge), .unassured)
            expectEqual(bench.insist(key.keyID, 2), .refused(.replayed))
            expectEqual(bench.insist(key.keyID, 3, challenge: challenge), .refused(.challengeSpent))
            bench.journal.failChanges(nil)
            expectEqual(bench.insist(key.keyID, 3), .refused(.revoked))
        },
        StoreContract("a store that could not be read at the end does not end well") {
            (bench) throws in
            bench.journal.failChanges(JournalError(.unusable, "test"))
            #expect(throws: JournalError(.unusable, "")) { try bench.table.close() }
            bench.journal.failChanges(nil)
        },
    ]

    static let enrolments = [
        StoreContract("a key is enrolled once, and its counter is never reset") { (bench) throws in
            let key = KeyRecord.sample(1)
            try expectEqual(bench.enrol(key), .inserted(key.keyID))
            expectEqual(bench.use(key.keyID, 9), .admitted)
            try expectEqual(bench.enrol(key), .existing(key.keyID))
            try expectEqual(bench.known(key.keyID).counter.rawValue, 9)
            expectEqual(bench.use(key.keyID, 9), .refused(.replayed))
            try bench.restart()
            try expectEqual(bench.enrol(key), .existing(key.keyID))
            expectEqual(bench.use(key.keyID, 9), .refused(.replayed))
        },
        StoreContract("what the chain of an Android phone said is durable") { (bench) throws in
            let key = KeyRecord.phone(1)
            var silent = KeyRecord.phone(2)
            silent.chain?.certificatesIssued = nil
            try bench.enrol(key)
            try bench.enrol(silent)
            try bench.enrol(.sample(3))
            for crash in [false, true] {
                let known = try bench.known(key.keyID)
                expectEqual(known.platform, .android)
                expectEqual(known.risk.metric(at: 1_700_000_000, daysMax: 1), 16)
                expectEqual(known.attestedDay, 19_675)
                let other = try bench.known(silent.keyID)
                expectEqual(other.risk.metric, nil)
                expectEqual(other.attestedDay, known.attestedDay)
                let apple = try bench.known(KeyRecord.sample(3).keyID)
                expectEqual(apple.platform, .apple)
                expectEqual(apple.attestedDay, nil)
                try expectEqual(bench.lab.stored(key.keyID), key)
                try expectEqual(bench.lab.stored(silent.keyID), silent)
                try bench.restart(crash: crash)
            }
            // It is no receipt, so nothing of it is renewed.
            var due = 0
            try bench.journal.receiptStore()?.forEachDue(at: .max) { _ in due += 1 }
            #expect(due <= 1)
        },
        StoreContract("an enrolled key has all that was said of it") { (bench) throws in
            var key = KeyRecord.sample(1)
            key.environment = .development
            key.context = Array("account 7".utf8)
            try bench.enrol(key)
            let known = try bench.known(key.keyID)
            expectEqual(known.context, key.context)
            expectEqual(known.publicKey, key.publicKey)
            expectEqual(known.environment, .development)
            expectEqual(bench.table.appID(of: known.app), key.appID)
            expectEqual(known.app, bench.table.number(ofApp: key.appID))
            #expect(!known.isRevoked)
            try expectEqual(bench.lab.stored(key.keyID), key)
            try bench.restart()
            try expectEqual(bench.known(key.keyID).publicKey, key.publicKey)
            try expectEqual(bench.known(key.keyID).context, key.context)
            expectEqual(bench.table.count, 1)
            // A context that is imported later is added; one that is there stays.
            var other = KeyRecord.sample(2)
            try bench.enrol(other)
            other.context = [1]
            try bench.lab.add(other)
            try expectEqual(bench.known(other.keyID).context, [1])
            other.context = [2]
            try bench.lab.add(other)
            try expectEqual(bench.known(other.keyID).context, [1])
            try expectEqual(bench.lab.stored(other.keyID)?.context, [1])
        },
        StoreContract("where the store keeps a secret, it is the same after a crash") {
            (bench) throws in
            let first = try bench.table.enrolmentSecret()
            try bench.restart(crash: true)
            let second = try bench.table.enrolmentSecret()
            expectEqual(first, second)
            #expect(first.map { $0.count == 32 } ?? true)
        },
        StoreContract("the same key enrolled many times at once is new once") { (bench) throws in
            let key = KeyRecord.sample(1)
            let boxes = (0..<8).map { _ in Box<EnrolOutcome>() }
            for box in boxes { bench.table.enrol(key) { box.set($0) } }
            try bench.table.committer.flush()
            expectEqual(boxes.count { $0.value == .inserted(key.keyID) }, 1)
            expectEqual(boxes.count { $0.value == .existing(key.keyID) }, 7)
        },
        StoreContract("an imported key that enrols is there already") { (bench) throws in
            let key = KeyRecord.sample(1, counter: 30)
            try bench.lab.add(key)
            try expectEqual(bench.enrol(.sample(1)), .existing(key.keyID))
            expectEqual(bench.use(key.keyID, 30), .refused(.replayed))
        },
        StoreContract("an enrolment that fails is told so, and may be tried again") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            bench.journal.fail(.before(JournalError(.full, "test")))
            try expectEqual(bench.enrol(key), .failed)
            // A store that others write to may have it, and can't say so.
            let unknown: ConsumeDecision =
                bench.table.decides == .inMemory ? .refused(.unknown) : .unavailable
            expectEqual(bench.use(key.keyID, 1), unknown)
            bench.journal.fail(.after(JournalError(.unusable, "test")))
            try expectEqual(bench.enrol(key), .failed)
            bench.journal.fail(nil)
            try expectEqual(bench.enrol(key), .existing(key.keyID))
            expectEqual(bench.use(key.keyID, 1), .admitted)
        },
        StoreContract("with too many enrolments waiting the next one fails") { (bench) throws in
            try bench.restart { $0.enrolmentsMax = 1 }
            let gate = bench.journal.holdUp()
            let boxes = (1...3).map { _ in Box<EnrolOutcome>() }
            bench.table.enrol(.sample(1)) { boxes[0].set($0) }
            gate.entered.wait()
            bench.table.enrol(.sample(2)) { boxes[1].set($0) }
            bench.table.enrol(.sample(3)) { boxes[2].set($0) }
            gate.open.signal()
            try bench.table.committer.flush()
            expectEqual(boxes[0].value, .inserted(KeyRecord.sample(1).keyID))
            expectEqual(boxes[1].value, .inserted(KeyRecord.sample(2).keyID))
            expectEqual(boxes[2].value, .failed)
        },
    ]

    static let commits = [
        StoreContract(
            "what comes during a commit is one transaction, told once, in order",
            decided: .inMemory
        ) { (bench) throws in
            let key = KeyRecord.sample(1)
            let other = KeyRecord.sample(2)
            try bench.enrol(key)
            try bench.enrol(other)
            let before = bench.journal.batches.count
            let gate = bench.journal.holdUp()
            let first = try bench.ticket(key.keyID, 1)
            bench.table.kick()
            gate.entered.wait()
            var last = first
            for counter in UInt32(2)...10 {
                for keyID in [key.keyID, other.keyID] {
                    let ticket = try bench.ticket(keyID, counter)
                    #expect(ticket > last)
                    last = ticket
                }
                bench.table.kick()
            }
            gate.open.signal()
            try bench.table.committer.flush()
            expectEqual(bench.log.reports.map(\.tickets.upperBound), [first, last])
            let batches = bench.journal.batches.dropFirst(before)
            expectEqual(batches.map(\.changes.count), [1, 2])
            expectEqual(batches.last?.changes.map(\.counters.highest.rawValue), [10, 10])
            let statistics = bench.table.committer.statistics
            expectEqual(statistics.depth, 0)
            #expect(!statistics.isDegraded)
        },
        StoreContract(
            "a change that nobody waits for is written with the next that is awaited",
            decided: .inMemory
        ) { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            let before = bench.journal.batches.count
            #expect(bench.consume(key.keyID, 1, durability: .behind).isTaken)
            bench.table.kick()
            expectEqual(bench.table.committer.statistics.depth, 1)
            expectEqual(bench.journal.batches.count, before)
            let ticket = try bench.ticket(key.keyID, 2)
            bench.table.kick()
            try bench.table.committer.flush()
            expectEqual(bench.log.reports.map(\.tickets.upperBound), [ticket])
            try expectEqual(bench.storedCounter(key.keyID), 2)
        },
        StoreContract(
            "many changes that nobody waits for are written all the same",
            decided: .inMemory
        ) { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            try bench.restart { $0.behindCount = 8 }
            let gate = bench.journal.holdUp()
            for counter in UInt32(1)...8 {
                #expect(bench.consume(key.keyID, counter, durability: .behind).isTaken)
            }
            bench.table.kick()
            gate.entered.wait()
            gate.open.signal()
            try bench.table.committer.flush()
            #expect(bench.log.reports.isEmpty)
            try expectEqual(bench.storedCounter(key.keyID), 8)
        },
        StoreContract("a clean stop writes what waits") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            #expect(bench.consume(key.keyID, 5, durability: .behind).isTaken)
            try bench.table.close()
            try expectEqual(bench.storedCounter(key.keyID), 5)
        },
        StoreContract("a stale write lowers nothing and forgets nothing") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            for counter in [UInt32(20), 18, 30] {
                expectEqual(bench.use(key.keyID, counter, .window(64)), .admitted)
            }
            try bench.table.committer.flush()
            let written = try #require(bench.journal.batches.last)
            let stale = CounterChange(
                row: try #require(written.changes.first?.row ?? written.uses.first?.row),
                counters: CounterState(highest: SignCounter(rawValue: 25)),
                usedAt: 1
            )
            _ = try bench.journal.commit(JournalBatch(changes: [stale]))
            try expectEqual(bench.storedCounter(key.keyID), 30)
            try expectEqual(bench.lab.stored(key.keyID)?.lastUsedAt, 100)
            try bench.restart()
            for counter in [UInt32(18), 20, 25, 30] {
                expectEqual(bench.use(key.keyID, counter, .window(64)), .refused(.replayed))
            }
            expectEqual(bench.use(key.keyID, 19, .window(64)), .admitted)
        },
    ]
}
