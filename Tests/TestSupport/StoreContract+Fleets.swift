import AppAttest
import Dispatch
import Expectations
import KeyStore
import Testing
import Tokens

extension StoreContract {
    /// What holds when several gateways use one store.
    static let fleets = [
        StoreContract("of two gateways that use one counter one is admitted", decided: .atCommit) {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            let other = try bench.neighbour()
            for counter in UInt32(1)...20 {
                let first = bench.consume(key.keyID, counter)
                let second = other.consume(key.keyID, counter)
                #expect(first.isTaken && second.isTaken)
                let decisions = [bench.decision(first), other.decision(second)]
                expectEqual(decisions, [.admitted, .refused(.replayed)])
            }
        },
        StoreContract(
            "of two gateways that spend one challenge one is admitted",
            decided: .atCommit
        ) { (bench) throws in
            let keys = [KeyRecord.sample(1), KeyRecord.sample(2)]
            for key in keys { try bench.enrol(key) }
            let other = try bench.neighbour()
            let challenge = try bench.sharedChallenge(with: other)
            let first = bench.consume(keys[0].keyID, 1, challenge: challenge)
            let second = other.consume(keys[1].keyID, 1, challenge: challenge)
            expectEqual(other.decision(second), .admitted)
            expectEqual(bench.decision(first), .refused(.challengeSpent))
            // Nothing of the refused one was used.
            try expectEqual(bench.storedCounter(keys[0].keyID), 0)
            expectEqual(bench.use(keys[0].keyID, 1), .admitted)
        },
        StoreContract(
            "a key that was revoked is refused at commit by a gateway that can't know it",
            decided: .atCommit
        ) { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            // The neighbour alone hears of changes.
            let other = try bench.neighbour()
            try bench.lab.revoke(key.keyID)
            expectEqual(other.consume(key.keyID, 1), .decided(.refused(.revoked)))
            let outcome = bench.consume(key.keyID, 1)
            #expect(outcome.isTaken)
            expectEqual(bench.decision(outcome), .refused(.revoked))
            expectEqual(bench.consume(key.keyID, 2), .decided(.refused(.revoked)))
            expectEqual(bench.table.revokedCount, 1)
        },
        StoreContract("what a gateway used while its store failed is used for all later") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            bench.journal.fail(.before(JournalError(.unusable, "test")))
            let ticket = try bench.ticket(key.keyID, 7)
            #expect(throws: JournalError.self) { try bench.table.committer.flush() }
            expectEqual(bench.log.decision(of: ticket), .unassured)
            bench.journal.fail(nil)
            try bench.table.committer.flush()
            try bench.restart(crash: true)
            expectEqual(bench.use(key.keyID, 7), .refused(.replayed))
            expectEqual(bench.use(key.keyID, 8), .admitted)
        },
        StoreContract(
            "a key that another gateway has enrolled is found when it is asked for",
            decided: .atCommit
        ) { (bench) throws in
            let other = try bench.neighbour()
            let key = KeyRecord.sample(3)
            guard case .absent = bench.table.find(key.keyID) else {
                throw Unexpected("a key is known that nobody has enrolled")
            }
            bench.meet(key.keyID)
            guard case .unknown = bench.table.find(key.keyID) else {
                throw Unexpected("it is not remembered that there is no such key")
            }
            try expectEqual(other.enrol(key), .inserted(key.keyID))
            // The moment for which it is remembered ends with the next look at the changes.
            _ = bench.table.refresh()
            bench.meet(key.keyID)
            try expectEqual(bench.known(key.keyID).counter, .zero)
            expectEqual(bench.use(key.keyID, 1), .admitted)
            expectEqual(other.use(key.keyID, 1), .refused(.replayed))
        },
        StoreContract(
            "an enrolment challenge is spent once by all gateways, with the key or not at all",
            decided: .atCommit
        ) { (bench) throws in
            let other = try bench.neighbour()
            let challenges = [try bench.challenge(), try bench.challenge()]
            let keys = (1...3).map { KeyRecord.sample($0) }
            try expectEqual(bench.enrol(keys[0], spending: challenges[0]), .inserted(keys[0].keyID))
            try expectEqual(other.enrol(keys[1], spending: challenges[0]), .challengeSpent)
            try expectEqual(bench.lab.stored(keys[1].keyID), nil)
            // Its client has lost the answer: whatever it sends now costs nothing.
            for challenge in challenges {
                let again = try other.enrol(keys[0], spending: challenge)
                expectEqual(again, .existing(keys[0].keyID))
            }
            bench.journal.fail(.before(JournalError(.full, "test")))
            try expectEqual(bench.enrol(keys[1], spending: challenges[1]), .failed)
            bench.journal.fail(nil)
            try expectEqual(other.enrol(keys[2], spending: challenges[1]), .inserted(keys[2].keyID))
            // What has enrolled a key signs nothing.
            expectEqual(
                other.use(keys[2].keyID, 1, challenge: challenges[1]),
                .refused(.challengeSpent)
            )
        },
        StoreContract("no more keys are looked up than may wait", decided: .atCommit) {
            (bench) throws in
            try bench.restart { $0.lookUpsMax = 2 }
            let tickets = (1...3).map { bench.table.lookUp(KeyRecord.sample($0).keyID) }
            expectEqual(tickets.map { $0 != nil }, [true, true, false])
            try bench.table.committer.flush()
            expectEqual(
                tickets.compactMap(\.self).map(bench.log.decision(of:)),
                [.admitted, .admitted]
            )
            #expect(bench.table.lookUp(KeyRecord.sample(4).keyID) != nil)
            bench.journal.fail(.before(JournalError(.unusable, "test")))
            let failing = bench.table.lookUp(KeyRecord.sample(5).keyID)
            #expect(throws: JournalError.self) { try bench.table.committer.flush() }
            expectEqual(failing.map(bench.log.decision(of:)), .unassured)
            guard case .absent = bench.table.find(KeyRecord.sample(5).keyID) else {
                throw Unexpected("what a failing store did not say is known")
            }
        },
        StoreContract(
            "what a gateway sent before it was killed counts, whenever it arrives",
            decided: .atCommit
        ) { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            let gate = bench.journal.holdUp()
            let (killed, log) = (bench.table, bench.log)
            _ = try bench.ticket(key.keyID, 5)
            killed.kick()
            gate.entered.wait()
            // Its successor starts while the statement is on its way.
            let other = try bench.neighbour()
            expectEqual(other.use(key.keyID, 4), .admitted)
            #expect(log.reports.isEmpty)
            gate.open.signal()
            try killed.committer.flush()
            expectEqual(other.use(key.keyID, 5), .refused(.replayed))
            expectEqual(other.use(key.keyID, 6), .admitted)
        },
    ]

    /// What holds where a commit decides.
    static let lateDecisions = [
        StoreContract("of one batch every use has an outcome of its own", decided: .atCommit) {
            (bench) throws in
            let keys = (1...6).map { KeyRecord.sample($0) }
            for key in keys { try bench.enrol(key) }
            let other = try bench.neighbour()
            let challenge = try bench.sharedChallenge(with: other)
            // What this gateway can't know.
            expectEqual(other.use(keys[1].keyID, 9), .admitted)
            try bench.lab.revoke(keys[2].keyID)
            expectEqual(other.use(keys[5].keyID, 1, challenge: challenge), .admitted)
            bench.journal.failUses(of: keys[4].keyID, JournalError(.busy, "test"))
            let before = bench.journal.batches.count
            let tickets = [
                try bench.ticket(keys[0].keyID, 3),
                try bench.ticket(keys[1].keyID, 9),
                try bench.ticket(keys[2].keyID, 1),
                try bench.ticket(keys[3].keyID, 1, challenge: challenge),
                try bench.ticket(keys[4].keyID, 1),
                try bench.ticket(keys[0].keyID, 4),
            ]
            try bench.table.committer.flush()
            let expected: [ConsumeDecision] = [
                .admitted, .refused(.replayed), .refused(.revoked), .refused(.challengeSpent),
                .unassured, .admitted,
            ]
            expectEqual(tickets.map(bench.log.decision(of:)), expected)
            expectEqual(bench.journal.batches[before].uses.count, tickets.count)
            expectEqual(bench.log.reports.count, 1)
            try expectEqual(bench.storedCounter(keys[3].keyID), 0)
            // The value that one of them has used in memory alone was written with what came next.
            try expectEqual(bench.storedCounter(keys[4].keyID), 1)
            #expect(!bench.table.committer.isDegraded)
            expectEqual(bench.table.committer.statistics.lastError, JournalError(.busy, ""))
        },
        StoreContract("while a commit stands still nobody is told anything", decided: .atCommit) {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            let gate = bench.journal.holdUp()
            let first = try bench.ticket(key.keyID, 1)
            bench.table.kick()
            gate.entered.wait()
            // Whether the first one is good is not known, so neither is the second.
            let second = try bench.ticket(key.keyID, 1)
            #expect(bench.log.reports.isEmpty)
            try expectEqual(bench.known(key.keyID).counter, .zero)
            gate.open.signal()
            try bench.table.committer.flush()
            expectEqual(bench.log.decision(of: first), .admitted)
            expectEqual(bench.log.decision(of: second), .refused(.replayed))
        },
        StoreContract(
            "of one assertion in a batch that fails and in the next one, one use is good",
            decided: .atCommit
        ) { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            let challenge = try bench.challenge()
            bench.journal.fail(.before(JournalError(.busy, "test")))
            let gate = bench.journal.holdUp()
            let first = try bench.ticket(key.keyID, 1, challenge: challenge)
            let twin = try bench.ticket(key.keyID, 1, challenge: challenge)
            bench.table.kick()
            gate.entered.wait()
            let later = try bench.ticket(key.keyID, 1, challenge: challenge)
            let elsewhere = try bench.ticket(key.keyID, 2, challenge: challenge)
            bench.journal.fail(nil)
            gate.open.signal()
            try bench.table.committer.flush()
            expectEqual(bench.log.decision(of: first), .unassured)
            expectEqual(bench.log.decision(of: twin), .refused(.replayed))
            expectEqual(bench.log.decision(of: later), .refused(.replayed))
            expectEqual(bench.log.decision(of: elsewhere), .refused(.challengeSpent))
        },
    ]
}

extension StoreContract.Bench {
    /// A challenge that is good at both gateways, as long as neither has issued another one.
    fileprivate func sharedChallenge(with other: StoreContract.Bench) throws -> ChallengeSerial {
        let serial = try challenge()
        guard try other.challenge() == serial else {
            throw StoreContract.Unexpected("the issuers are not at the same place")
        }
        return serial
    }
}
