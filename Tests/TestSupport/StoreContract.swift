package import AppAttest
import Cryptography
import Dispatch
package import KeyStore
import Synchronization
import Testing
package import Tokens

/// A place where a store lives: what the contract needs of a backend.
package protocol StoreLab: AnyObject {
    /// Opens what is durable, as a gateway does at its start.
    func open() throws -> any KeyJournal
    /// Ends the running gateway as a power cut does: what was not durable is gone. The next `open`
    /// sees what is left.
    func crash() throws
    /// Revokes a key, as another process does. It fails, and the key is revoked all the same, while
    /// the table can't read (`isRead`).
    func revoke(_ keyID: KeyID, isRead: Bool) throws
    /// Restores a revoked key, or deletes one, as another process does.
    func set(_ status: KeyRecord.Status, of keyID: KeyID) throws
    /// Erases the deleted keys, as another process does. Gateways are not told of it.
    func erase() throws
    /// Imports a key, as another process does.
    func add(_ record: KeyRecord) throws
    /// What is durable of a key.
    func stored(_ keyID: KeyID) throws -> KeyRecord?
}

extension StoreLab {
    func revoke(_ keyID: KeyID) throws { try revoke(keyID, isRead: true) }
}

/// What every store promises, as checks that run on any backend.
package struct StoreContract: CustomTestStringConvertible, Sendable {
    /// The promise in words.
    package let claim: String
    /// The stores that promise it: those that decide then; `nil` for all.
    package let moment: DecisionMoment?
    private let check: @Sendable (Bench) throws -> Void

    package init(
        _ claim: String,
        decided moment: DecisionMoment? = nil,
        _ check: @escaping @Sendable (Bench) throws -> Void
    ) {
        self.claim = claim
        self.moment = moment
        self.check = check
    }

    package var testDescription: String { claim }

    /// Checks the promise on a fresh lab.
    package func run(in lab: any StoreLab) throws {
        try check(try Bench(lab))
    }

    /// What a store promises that decides at this moment.
    package static func all(decided moment: DecisionMoment) -> [StoreContract] {
        let lists = [
            counters, races, challenges, otherProcesses, enrolments, commits, failures, crashes,
            fleets, smallTables, lateDecisions, receipts, tokens, erasures,
        ]
        return lists.flatMap(\.self).filter { $0.moment == nil || $0.moment == moment }
    }
}

extension StoreContract {
    /// A gateway's store on a lab, and shorthands.
    package final class Bench {
        package let lab: any StoreLab
        package let issuer = ChallengeIssuer(capacity: 1_024, epoch: 1)
        package private(set) var journal: FaultyJournal
        package private(set) var table: KeyTable
        package private(set) var log = TicketLog()
        private var limits: Committer.Limits
        private let apps: AppNumbers

        init(
            _ lab: any StoreLab,
            apps: AppNumbers = AppNumbers(),
            keysMax: Int? = nil
        ) throws {
            self.lab = lab
            self.apps = apps
            limits = Committer.Limits()
            // Nothing is written before the test says so.
            limits.behindDelay = .seconds(3_600)
            limits.retryDelay = .seconds(3_600)
            journal = FaultyJournal(try lab.open(), keysMax: keysMax)
            table = try KeyTable(journal: journal, limits: limits, from: .numbers(apps))
            table.committer.register(log)
        }

        /// Starts anew on what is durable; with `crash`, on what a power cut leaves.
        package func restart(
            crash: Bool = false,
            _ change: (inout Committer.Limits) -> Void = { _ in }
        )
            throws
        {
            if crash { try lab.crash() } else { try table.close() }
            change(&limits)
            journal = FaultyJournal(try lab.open())
            table = try KeyTable(journal: journal, limits: limits, from: .numbers(apps))
            log = TicketLog()
            table.committer.register(log)
        }

        /// Another gateway on the same store. It alone hears of changes by others from now on.
        ///
        /// - keysMax: how many keys it holds in memory.
        package func neighbour(keysMax: Int? = nil) throws -> Bench {
            try Bench(lab, apps: apps, keysMax: keysMax)
        }

        /// Enrols a key and waits for the outcome.
        @discardableResult
        package func enrol(
            _ record: KeyRecord,
            spending challenge: ChallengeSerial? = nil
        ) throws -> EnrolOutcome {
            let done = DispatchSemaphore(value: 0)
            let box = Box<EnrolOutcome>()
            table.enrol(record, spending: challenge) { outcome in
                box.set(outcome)
                done.signal()
            }
            done.wait()
            // The writer may still be at the end of its turn; what comes next is to find it idle.
            try table.committer.flush()
            return try #require(box.value)
        }

        /// A challenge that is good and not spent.
        package func challenge() throws -> ChallengeSerial { try challenge(of: issuer) }

        func challenge(of issuer: ChallengeIssuer) throws -> ChallengeSerial {
            let text = issuer.issue(.assertion, now: 0)
            guard case .valid(let serial) = issuer.examine(text.span, purpose: .assertion, now: 0)
            else { throw Unexpected("a fresh challenge is not valid") }
            return serial
        }

        /// Has a key looked up that the table does not have, as a gateway does before it uses one.
        package func meet(_ keyID: KeyID) {
            guard case .absent = table.find(keyID), table.lookUp(keyID) != nil else { return }
            // When it throws, the key is not known.
            try? table.committer.flush()
        }

        /// Uses a counter and waits until that is decided.
        ///
        /// A store that decides in memory has written nothing then.
        package func use(
            _ keyID: KeyID,
            _ counter: UInt32?,
            _ rule: StoreCounterRule = .strict,
            challenge: ChallengeSerial? = nil,
            now: Int64 = 100
        ) -> ConsumeDecision {
            meet(keyID)
            return decision(consume(keyID, counter, rule, challenge: challenge, now: now))
        }

        /// What an answer comes to.
        package func decision(_ outcome: ConsumeOutcome) -> ConsumeDecision {
            switch outcome {
            case .decided(let decision): return decision
            case .pending(let ticket):
                if table.decides == .inMemory { return .admitted }
                // When it throws, the log says so too.
                try? table.committer.flush()
                guard let decision = log.decision(of: ticket) else {
                    Issue.record("a use was decided, and nobody was told")
                    return .unavailable
                }
                return decision
            }
        }

        /// Uses a counter, and leaves it to the test to wait.
        package func consume(
            _ keyID: KeyID,
            row: Int64? = nil,
            _ counter: UInt32?,
            _ rule: StoreCounterRule = .strict,
            challenge: ChallengeSerial? = nil,
            now: Int64 = 100,
            durability: Durability = .awaited,
            whenFailing: FailingStore = .decline
        ) -> ConsumeOutcome {
            table.consume(
                CounterUse(
                    of: keyID,
                    row: row,
                    counter: counter.map { SignCounter(rawValue: $0) },
                    rule: rule,
                    challenge: challenge
                ),
                issuer: issuer,
                now: now,
                durability: durability,
                whenFailing: whenFailing
            )
        }

        /// The same, for the ticket of a use that is pending.
        package func ticket(
            _ keyID: KeyID,
            _ counter: UInt32?,
            challenge: ChallengeSerial? = nil
        ) throws -> CommitTicket {
            let outcome = consume(keyID, counter, challenge: challenge)
            guard case .pending(let ticket) = outcome else { throw Unexpected("\(outcome)") }
            return ticket
        }

        package func peek(
            _ keyID: KeyID,
            _ counter: UInt32?,
            _ rule: StoreCounterRule = .strict,
            challenge: ChallengeSerial? = nil
        ) -> ConsumeDecision {
            meet(keyID)
            return table.peek(
                CounterUse(
                    of: keyID,
                    counter: counter.map { SignCounter(rawValue: $0) },
                    rule: rule,
                    challenge: challenge
                ),
                issuer: issuer
            )
        }

        package func known(_ keyID: KeyID) throws -> StoredKey {
            guard case .known(let key) = table.find(keyID) else {
                throw Unexpected("the key is not known")
            }
            return key
        }

        /// The highest counter that is durable.
        package func storedCounter(_ keyID: KeyID) throws -> UInt32 {
            try #require(try lab.stored(keyID)).counters.highest.rawValue
        }
    }

    package struct Unexpected: Error, CustomStringConvertible {
        package let description: String

        package init(_ description: String) { self.description = description }
    }
}

/// A value that a callback leaves.
package final class Box<Value: Sendable>: Sendable {
    private let content = Mutex<Value?>(nil)

    package init() {}

    package var value: Value? { content.withLock { $0 } }

    package func set(_ value: Value) { content.withLock { $0 = value } }
}

extension KeyRecord {
    /// A key of the same number for the same seed.
    package static func sample(_ seed: UInt8, counter: UInt32 = 0) -> KeyRecord {
        let key = P256PrivateKey(seed: [seed, 1].span).publicKey
        var record = KeyRecord(
            keyID: KeyID(of: key),
            appID: "ABCDE12345.com.example.shop",
            environment: .production,
            publicKey: key,
            enrolledAt: 1_700_000_000
        )
        record.counters = CounterState(highest: SignCounter(rawValue: counter))
        record.receipt = [1, 2, 3, seed]
        return record
    }

    /// A key of an Android phone, of the same number for the same seed.
    package static func phone(_ seed: UInt8) -> KeyRecord {
        var record = sample(seed)
        record.platform = .android
        record.appID = "com.example.shop"
        record.receipt = nil
        record.chain = ChainRecord(
            serials: ["1", "c35747a084470c31\(seed)", "8f00"],
            certificatesIssued: 16
        )
        return record
    }
}

extension ConsumeOutcome {
    /// Whether it may be good.
    package var isTaken: Bool {
        switch self {
        case .pending, .decided(.admitted): true
        case .decided: false
        }
    }
}
