import AppAttest
import Dispatch
import Expectations
import KeyStore
import Testing
import Tokens

extension StoreContract {
    static let counters = [
        StoreContract("a strict counter must be greater than the one before") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            expectEqual(bench.use(key.keyID, 0), .refused(.replayed))
            expectEqual(bench.use(key.keyID, 5), .admitted)
            expectEqual(bench.use(key.keyID, 5), .refused(.replayed))
            expectEqual(bench.use(key.keyID, 4), .refused(.replayed))
            expectEqual(bench.use(key.keyID, 6), .admitted)
            expectEqual(bench.use(key.keyID, .max), .admitted)
            expectEqual(bench.use(key.keyID, .max), .refused(.replayed))
            try expectEqual(bench.known(key.keyID).counter.rawValue, .max)
        },
        StoreContract("a window admits what is unseen and near enough, each once") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            expectEqual(bench.use(key.keyID, 100, .window(4)), .admitted)
            expectEqual(bench.use(key.keyID, 95, .window(4)), .refused(.replayed))
            for counter in [UInt32(96), 99, 97] {
                expectEqual(bench.use(key.keyID, counter, .window(4)), .admitted)
                expectEqual(bench.use(key.keyID, counter, .window(4)), .refused(.replayed))
            }
            expectEqual(bench.use(key.keyID, 95, .window(64)), .admitted)
            expectEqual(bench.use(key.keyID, 36, .window(64)), .admitted)
            expectEqual(bench.use(key.keyID, 35, .window(64)), .refused(.replayed))
        },
        StoreContract("what one rule admits, the other never admits again") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            expectEqual(bench.use(key.keyID, 10, .strict), .admitted)
            expectEqual(bench.use(key.keyID, 12, .strict), .admitted)
            expectEqual(bench.use(key.keyID, 10, .window(64)), .refused(.replayed))
            expectEqual(bench.use(key.keyID, 11, .window(64)), .admitted)
            expectEqual(bench.use(key.keyID, 11, .strict), .refused(.replayed))
            expectEqual(bench.use(key.keyID, 0, .window(64)), .refused(.replayed))
        },
        // An update makes a window of each rule that says no counter: keys come from a strict time.
        StoreContract("what strict rules admitted before a restart, a window never admits again") {
            (bench) throws in
            let strict = KeyRecord.sample(1)
            let mixed = KeyRecord.sample(2)
            for key in [strict, mixed] { try bench.enrol(key) }
            for counter in [UInt32(3), 5] {
                expectEqual(bench.use(strict.keyID, counter, .strict), .admitted)
            }
            expectEqual(bench.use(mixed.keyID, 9, .window(64)), .admitted)
            expectEqual(bench.use(mixed.keyID, 7, .window(64)), .admitted)
            expectEqual(bench.use(mixed.keyID, 8, .strict), .refused(.replayed))
            expectEqual(bench.use(mixed.keyID, 70, .strict), .admitted)
            for _ in 0..<2 {
                try bench.restart()
                for counter in [UInt32(0), 3, 5] {
                    expectEqual(bench.use(strict.keyID, counter, .window(64)), .refused(.replayed))
                }
                for counter in [UInt32(5), 7, 9, 70] {
                    expectEqual(bench.use(mixed.keyID, counter, .window(64)), .refused(.replayed))
                }
            }
            // What neither has seen is good once.
            for (key, counter) in [(strict, UInt32(4)), (mixed, 8)] {
                expectEqual(bench.use(key.keyID, counter, .strict), .refused(.replayed))
                expectEqual(bench.use(key.keyID, counter, .window(64)), .admitted)
                expectEqual(bench.use(key.keyID, counter, .window(64)), .refused(.replayed))
            }
            // Too far below now, used or not.
            expectEqual(bench.use(mixed.keyID, 71, .strict), .admitted)
            for counter in [UInt32(6), 7] {
                expectEqual(bench.use(mixed.keyID, counter, .window(64)), .refused(.replayed))
            }
        },
        StoreContract("the window is as it was after a restart") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            for counter in [UInt32(70), 68, 10] {
                expectEqual(bench.use(key.keyID, counter, .window(64)), .admitted)
            }
            try bench.restart()
            for counter in [UInt32(70), 68, 10] {
                expectEqual(bench.use(key.keyID, counter, .window(64)), .refused(.replayed))
            }
            expectEqual(bench.use(key.keyID, 69, .window(64)), .admitted)
        },
        StoreContract("a key that counts nothing is good once for each challenge") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            expectEqual(bench.use(key.keyID, nil), .refused(.replayed))
            let challenges = [try bench.challenge(), try bench.challenge()]
            for challenge in challenges {
                expectEqual(bench.use(key.keyID, nil, challenge: challenge), .admitted)
                expectEqual(
                    bench.use(key.keyID, nil, challenge: challenge),
                    .refused(.challengeSpent)
                )
            }
            try expectEqual(bench.known(key.keyID).counter, .zero)
        },
        StoreContract("a key that is not enrolled is unknown") { (bench) throws in
            expectEqual(bench.use(KeyRecord.sample(1).keyID, 1), .refused(.unknown))
            expectEqual(bench.peek(KeyRecord.sample(1).keyID, 1), .refused(.unknown))
        },
        StoreContract("a look ahead says what a use would, and changes nothing") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            let challenge = try bench.challenge()
            for _ in 0..<2 {
                expectEqual(bench.peek(key.keyID, 3, challenge: challenge), .admitted)
            }
            expectEqual(bench.use(key.keyID, 3, challenge: challenge), .admitted)
            expectEqual(bench.peek(key.keyID, 3), .refused(.replayed))
            expectEqual(bench.peek(key.keyID, 4, challenge: challenge), .refused(.challengeSpent))
        },
    ]

    static let races = [
        StoreContract("of many that race with one counter exactly one is admitted") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            for (round, rule) in [StoreCounterRule.strict, .window(8)].enumerated() {
                for step in 1...200 {
                    let counter = UInt32(round * 1_000 + step)
                    let wins = bench.race(4) { table, issuer, _ in
                        [table.consume(key.keyID, counter, rule, issuer: issuer)]
                    }
                    expectEqual(wins, 1)
                }
            }
        },
        StoreContract("of many that race with one challenge exactly one is admitted") {
            (bench) throws in
            let keys = (1...4).map { KeyRecord.sample($0) }
            for key in keys { try bench.enrol(key) }
            for step in UInt32(1)...200 {
                let challenge = try bench.challenge()
                let wins = bench.race(4) { table, issuer, place in
                    let keyID = keys[place].keyID
                    return [table.consume(keyID, step, challenge: challenge, issuer: issuer)]
                }
                expectEqual(wins, 1)
            }
            let sum = try keys.reduce(0) { try $0 + bench.known($1.keyID).counter.rawValue }
            #expect(sum > 0)
        },
        StoreContract("many that race in a window leave each counter used once") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            let wins = bench.race(4) { table, issuer, _ in
                (1...64 as ClosedRange<UInt32>).reversed().map { counter in
                    table.consume(key.keyID, counter, .window(64), issuer: issuer)
                }
            }
            expectEqual(wins, 64)
            try bench.table.committer.flush()
            let stored = try #require(try bench.lab.stored(key.keyID)).counters
            expectEqual(stored.highest.rawValue, 64)
            expectEqual(stored.seen, .max)
        },
    ]

    static let challenges = [
        StoreContract("a refused counter leaves the challenge unspent") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            expectEqual(bench.use(key.keyID, 5), .admitted)
            let challenge = try bench.challenge()
            expectEqual(bench.use(key.keyID, 5, challenge: challenge), .refused(.replayed))
            #expect(!bench.issuer.isSpent(challenge))
            expectEqual(bench.use(key.keyID, 6, challenge: challenge), .admitted)
            #expect(bench.issuer.isSpent(challenge))
        },
        StoreContract("a spent challenge leaves the counter free") { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            let challenge = try bench.challenge()
            expectEqual(bench.issuer.spend(challenge), .spent)
            expectEqual(bench.use(key.keyID, 5, challenge: challenge), .refused(.challengeSpent))
            try expectEqual(bench.known(key.keyID).counter, .zero)
            try bench.table.committer.flush()
            #expect(bench.journal.batches.flatMap(\.changes).isEmpty)
            expectEqual(bench.use(key.keyID, 5), .admitted)
        },
        StoreContract("an unknown or revoked key leaves the challenge unspent") { (bench) throws in
            let key = KeyRecord.sample(1)
            let challenge = try bench.challenge()
            expectEqual(bench.use(key.keyID, 1, challenge: challenge), .refused(.unknown))
            try bench.enrol(key)
            try bench.lab.revoke(key.keyID)
            expectEqual(bench.use(key.keyID, 1, challenge: challenge), .refused(.revoked))
            #expect(!bench.issuer.isSpent(challenge))
        },
        StoreContract("with no room for a change nothing is consumed, and there is room again") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            try bench.restart { $0.changesMax = 2 }
            #expect(bench.consume(key.keyID, 1, durability: .behind).isTaken)
            #expect(bench.consume(key.keyID, 2, durability: .behind).isTaken)
            let challenge = try bench.challenge()
            expectEqual(bench.peek(key.keyID, 3, challenge: challenge), .unavailable)
            expectEqual(bench.use(key.keyID, 3, challenge: challenge), .unavailable)
            #expect(!bench.issuer.isSpent(challenge))
            try bench.table.committer.flush()
            try expectEqual(bench.known(key.keyID).counter.rawValue, 2)
            expectEqual(bench.use(key.keyID, 3, challenge: challenge), .admitted)
        },
        StoreContract("with no room for a change both are used in memory for who asks for it") {
            (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            try bench.restart { $0.changesMax = 1 }
            #expect(bench.consume(key.keyID, 1, durability: .behind).isTaken)
            let challenge = try bench.challenge()
            expectEqual(bench.insist(key.keyID, 3, challenge: challenge), .unassured)
            #expect(bench.issuer.isSpent(challenge))
            expectEqual(bench.insist(key.keyID, 3), .refused(.replayed))
            expectEqual(bench.insist(key.keyID, 4, challenge: challenge), .refused(.challengeSpent))
            try expectEqual(bench.known(key.keyID).counter.rawValue, 3)
            // The next change of the key brings it to the disk.
            try bench.table.committer.flush()
            expectEqual(bench.use(key.keyID, 4), .admitted)
            try bench.table.committer.flush()
            try bench.restart()
            expectEqual(bench.use(key.keyID, 3), .refused(.replayed))
        },
        StoreContract(
            "with no room for a spent challenge nothing is consumed",
            decided: .inMemory
        ) { (bench) throws in
            let key = KeyRecord.sample(1)
            try bench.enrol(key)
            let small = ChallengeIssuer(capacity: 1)
            let serials = try (0..<449).map { _ in try bench.challenge(of: small) }
            func use(_ counter: UInt32, _ serial: ChallengeSerial) -> ConsumeDecision {
                let outcome = bench.table.consume(
                    CounterUse(
                        of: key.keyID,
                        counter: SignCounter(rawValue: counter),
                        rule: .strict,
                        challenge: serial
                    ),
                    issuer: small,
                    now: 0
                )
                return bench.decision(outcome)
            }
            expectEqual(use(1, serials[0]), .admitted)
            expectEqual(use(2, serials[448]), .refused(.challengesExhausted))
            try expectEqual(bench.known(key.keyID).counter.rawValue, 1)
            expectEqual(use(2, serials[1]), .admitted)
        },
    ]
}

extension StoreContract.Bench {
    /// Uses a counter although the store fails.
    func insist(
        _ keyID: KeyID,
        _ counter: UInt32,
        challenge: ChallengeSerial? = nil
    ) -> ConsumeDecision {
        decision(consume(keyID, counter, challenge: challenge, whenFailing: .useInMemory))
    }

    /// Runs the same on so many threads at once, and counts what was admitted.
    func race(
        _ count: Int,
        _ body: @escaping @Sendable (KeyTable, ChallengeIssuer, Int) -> [ConsumeOutcome]
    ) -> Int {
        let table = table
        let issuer = issuer
        let boxes = (0..<count).map { _ in Box<[ConsumeOutcome]>() }
        DispatchQueue.concurrentPerform(iterations: count) { place in
            boxes[place].set(body(table, issuer, place))
        }
        return boxes.flatMap { $0.value ?? [] }.count { decision($0) == .admitted }
    }
}

extension KeyTable {
    fileprivate func consume(
        _ keyID: KeyID,
        _ counter: UInt32,
        _ rule: StoreCounterRule = .strict,
        challenge: ChallengeSerial? = nil,
        issuer: ChallengeIssuer
    ) -> ConsumeOutcome {
        consume(
            CounterUse(
                of: keyID,
                counter: SignCounter(rawValue: counter),
                rule: rule,
                challenge: challenge
            ),
            issuer: issuer,
            now: 1
        )
    }
}
