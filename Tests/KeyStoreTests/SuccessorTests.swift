import AppAttest
import Dispatch
import Expectations
import KeyStore
import RequestBinding
import Signatures
import Synchronization
import TestSupport
import Testing
import Tokens

/// A decider that has handed over, and the one that decides.
@Suite struct SuccessorTests {
    /// The way between both, in one process.
    private final class Line: Successor {
        let service: SuccessorService
        private let isCut = Mutex(false)
        private let queue = DispatchQueue(label: "line")

        init(_ service: SuccessorService) { self.service = service }

        func cut() { isCut.withLock { $0 = true } }

        func ask(_ question: [UInt8]) -> [UInt8]? {
            let done = DispatchSemaphore(value: 0)
            let box = Box<[UInt8]?>()
            ask(question) { answer in
                box.set(answer)
                done.signal()
            }
            done.wait()
            return box.value ?? nil
        }

        func ask(_ question: [UInt8], _ answered: @escaping @Sendable ([UInt8]?) -> Void) {
            guard !isCut.withLock({ $0 }) else { return answered(nil) }
            queue.async { self.service.answer(question) { answered($0) } }
        }
    }

    /// The tokens that were used after the hand-over.
    private final class Tokens: TokenClaiming {
        private let used = Mutex<Set<SHA256Digest>>([])

        func claim(_ token: SHA256Digest, now _: Int64) -> TokenClaim {
            used.withLock { $0.insert(token).inserted } ? .free : .used
        }

        func release(_ token: SHA256Digest) { used.withLock { _ = $0.remove(token) } }
    }

    /// Is told of each decision.
    private final class Log: CommitListener {
        private let decisions = Mutex<[(CommitTicket, ConsumeDecision)]>([])

        func commitEnded(_ report: CommitReport) {
            decisions.withLock {
                $0.append(
                    (report.tickets.lowerBound, report.decision(of: report.tickets.lowerBound))
                )
            }
        }

        var all: [(ticket: CommitTicket, decision: ConsumeDecision)] { decisions.withLock { $0 } }
    }

    private final class Bench: Sendable {
        let journal = MemoryJournal()
        let before: Decider
        let after: Decider
        let tokens = Tokens()
        let line: Line
        let log = Log()

        /// - keys: enrolled before the hand-over.
        init(_ keys: [KeyRecord]) throws {
            before = Decider(
                keys: try KeyTable(journal: journal),
                challenges: ChallengeIssuer(capacity: 1_024),
                sessions: SessionTable()
            )
            for key in keys {
                let done = DispatchSemaphore(value: 0)
                before.enrol(key) { _ in done.signal() }
                done.wait()
            }
            after = try Self.successor(of: before, on: journal)
            line = Line(SuccessorService(after, tokens: tokens))
            before.keys.committer.register(log)
        }

        /// The decider of a process that goes on from the state of another.
        static func successor(
            of decider: Decider,
            on journal: some KeyJournal
        ) throws -> Decider {
            _ = try decider.keys.stopWriting()
            return Decider(
                keys: try KeyTable(journal: journal),
                challenges: try ChallengeIssuer(
                    capacity: 1_024,
                    goingOnFrom: decider.challenges.state
                ),
                sessions: try SessionTable(goingOnFrom: decider.sessions.state)
            )
        }

        func handOver() { before.handOver(to: line) }

        func use(
            _ keyID: KeyID,
            _ counter: UInt32,
            _ challenge: ChallengeSerial? = nil,
            durability: Durability = .awaited,
            at decider: Decider
        ) -> ConsumeOutcome {
            decider.consume(
                CounterUse(
                    of: keyID,
                    counter: SignCounter(rawValue: counter),
                    rule: .window(64),
                    challenge: challenge
                ),
                now: 100,
                durability: durability
            )
        }

        /// Waits for the decision of a use.
        func decision(_ outcome: ConsumeOutcome) throws -> ConsumeDecision {
            guard case .pending(let ticket) = outcome else {
                guard case .decided(let decision) = outcome else { return .unavailable }
                return decision
            }
            while true {
                if let found = log.all.first(where: { $0.ticket == ticket }) {
                    return found.decision
                }
                try after.keys.committer.flush()
            }
        }

        func serial(at decider: Decider, _ text: [UInt8]) -> ChallengeSerial? {
            let found = decider.examine(text.span, purpose: .assertion, now: 0)
            return if case .valid(let serial) = found { serial } else { nil }
        }
    }

    @Test func `a key is found as the successor has it`() throws {
        var key = KeyRecord.sample(1, counter: 4)
        key.context = [1, 2]
        let bench = try Bench([key])
        bench.handOver()
        expectEqual(bench.before.decides, .atCommit)
        try expectEqual(bench.decision(bench.use(key.keyID, 9, at: bench.before)), .admitted)
        guard case .known(let found) = bench.before.find(key.keyID) else {
            Issue.record("the key is not known")
            return
        }
        expectEqual(found.counter.rawValue, 9)
        expectEqual(found.publicKey, key.publicKey)
        expectEqual(found.context, [1, 2])
        expectEqual(bench.before.keys.appID(of: found.app), key.appID)
        #expect(bench.journal.revoke(key.keyID, at: 1))
        guard case .known(let revoked) = bench.before.find(key.keyID) else {
            Issue.record("the key is not known")
            return
        }
        #expect(revoked.isRevoked)
        let late = try bench.decision(bench.use(key.keyID, 10, at: bench.before))
        expectEqual(late, .refused(.revoked))
        expectEqual(bench.journal.record(key.keyID)?.counters.highest.rawValue, 9)
    }

    @Test func `a use is admitted at one of both, and refused at the other`() throws {
        let key = KeyRecord.sample(1)
        let bench = try Bench([key])
        bench.handOver()
        for counter in UInt32(1)...20 {
            let text = bench.before.issue(.assertion, now: 0)
            let here = try #require(bench.serial(at: bench.before, text))
            let there = try #require(bench.serial(at: bench.after, text))
            let places = [(bench.before, here), (bench.after, there)]
            let (one, other) = counter % 2 == 0 ? (0, 1) : (1, 0)
            let first = bench.use(key.keyID, counter, places[one].1, at: places[one].0)
            if one == 0 { try expectEqual(bench.decision(first), .admitted) }
            let again = bench.use(key.keyID, counter, places[other].1, at: places[other].0)
            let decision = other == 0 ? try bench.decision(again) : Self.decided(again)
            expectEqual(decision, .refused(.replayed))
            // The challenge with another counter.
            let more = bench.use(key.keyID, counter + 40, here, at: bench.before)
            try expectEqual(bench.decision(more), .refused(.challengeSpent))
            expectEqual(bench.before.examine(text.span, purpose: .assertion, now: 0), .spent)
        }
    }

    private static func decided(_ outcome: ConsumeOutcome) -> ConsumeDecision? {
        if case .decided(let decision) = outcome { decision } else { nil }
    }

    @Test func `of uses that race at both, each is admitted once, and answered in order`() throws {
        let key = KeyRecord.sample(1)
        let bench = try Bench([key])
        bench.handOver()
        let admitted = Mutex<[UInt32: Int]>([:])
        let tickets = Mutex<[(CommitTicket, UInt32)]>([])
        DispatchQueue.concurrentPerform(iterations: 4) { number in
            let decider = number % 2 == 0 ? bench.before : bench.after
            for counter in UInt32(1)...60 {
                let durability: Durability = counter % 3 == 0 ? .behind : .awaited
                switch bench.use(key.keyID, counter, durability: durability, at: decider) {
                case .decided(.admitted): admitted.withLock { $0[counter, default: 0] += 1 }
                case .pending(let ticket) where decider === bench.before:
                    tickets.withLock { $0.append((ticket, counter)) }
                case .pending: admitted.withLock { $0[counter, default: 0] += 1 }
                case .decided: break
                }
            }
        }
        for (ticket, counter) in tickets.withLock({ $0 })
        where try bench.decision(.pending(ticket)) == .admitted {
            admitted.withLock { $0[counter, default: 0] += 1 }
        }
        expectEqual(
            admitted.withLock { $0 },
            Dictionary(uniqueKeysWithValues: (1...60).map { ($0, 1) })
        )
        expectEqual(bench.log.all.map(\.ticket), bench.log.all.map(\.ticket).sorted())
    }

    @Test func `a key of an Android phone is enrolled by the successor with its chain`() throws {
        let bench = try Bench([])
        bench.handOver()
        let done = DispatchSemaphore(value: 0)
        bench.before.enrol(.phone(1)) { _ in done.signal() }
        done.wait()
        expectEqual(bench.journal.record(KeyRecord.phone(1).keyID), .phone(1))
        guard case .known(let found) = bench.before.find(KeyRecord.phone(1).keyID) else {
            Issue.record("the key is not there")
            return
        }
        expectEqual(found.platform, .android)
        expectEqual(found.risk.metric, 16)
        expectEqual(found.attestedDay, 19_675)
    }

    @Test func `a key is enrolled by the successor, and an old one is there`() throws {
        let bench = try Bench([KeyRecord.sample(1)])
        bench.handOver()
        for (seed, expected) in [(UInt8(1), "existing"), (2, "inserted"), (2, "existing")] {
            var record = KeyRecord.sample(seed)
            record.receiptState = ReceiptState(createdAt: 5, expiresAt: 9)
            let done = DispatchSemaphore(value: 0)
            let box = Box<EnrolOutcome>()
            bench.before.enrol(record) { outcome in
                box.set(outcome)
                done.signal()
            }
            done.wait()
            #expect(String(describing: box.value).contains(expected))
        }
        let stored = try #require(bench.journal.record(KeyRecord.sample(2).keyID))
        expectEqual(stored.receipt, KeyRecord.sample(2).receipt)
        expectEqual(stored.receiptState.createdAt, 5)
        expectEqual(stored.receiptState.expiresAt, 9)
        // The writer has ended its turn.
        try bench.after.keys.committer.flush()
        #expect(!bench.before.isEnrolling(stored.keyID))
    }

    @Test func `without its successor a decider decides nothing`() throws {
        let key = KeyRecord.sample(1)
        let bench = try Bench([key])
        bench.handOver()
        let text = bench.before.issue(.assertion, now: 0)
        let serial = try #require(bench.serial(at: bench.before, text))
        let token = SHA256.digest(of: [1])
        expectEqual(bench.before.claim(token, now: 0), .free)
        bench.line.cut()
        try expectEqual(bench.decision(bench.use(key.keyID, 1, at: bench.before)), .unavailable)
        guard case .unavailable = bench.before.find(key.keyID) else {
            Issue.record("the key was found")
            return
        }
        expectEqual(bench.before.spend(serial), .noRoom)
        expectEqual(bench.before.examine(text.span, purpose: .assertion, now: 0), .unknown)
        let dead = bench.before.issue(.assertion, now: 7)
        expectEqual(bench.after.examine(dead.span, purpose: .assertion, now: 7), .expired)
        expectEqual(bench.before.claim(token, now: 0), .full)
    }

    @Test func `a question that was not asked is answered with nothing`() throws {
        let key = KeyRecord.sample(1)
        let bench = try Bench([key])
        bench.handOver()
        var random = SystemRandomNumberGenerator()
        for length in 0..<400 {
            var question = (0..<length % 90).map { _ in UInt8.random(in: 0...255, using: &random) }
            if !question.isEmpty { question[0] = UInt8(length % 100) }
            let box = Box<[UInt8]>()
            bench.line.service.answer(question) { box.set($0) }
        }
        try expectEqual(bench.decision(bench.use(key.keyID, 1, at: bench.before)), .admitted)
    }

    @Test func `a store that decides is asked by the successor, for keys and challenges`() throws {
        let journal = DecidingJournal()
        let before = Decider(
            keys: try KeyTable(journal: journal),
            challenges: ChallengeIssuer(capacity: 1_024),
            sessions: SessionTable()
        )
        let log = Log()
        before.keys.committer.register(log)
        let after = try Bench.successor(of: before, on: journal)
        before.handOver(to: Line(SuccessorService(after, tokens: Tokens())))
        func enrol(_ seed: UInt8, _ challenge: ChallengeSerial) -> EnrolOutcome? {
            let done = DispatchSemaphore(value: 0)
            let box = Box<EnrolOutcome>()
            before.enrol(KeyRecord.sample(seed), spending: challenge) { outcome in
                box.set(outcome)
                done.signal()
            }
            done.wait()
            return box.value
        }
        let text = before.issue(.enrolment, now: 0)
        guard case .valid(let serial) = before.examine(text.span, purpose: .enrolment, now: 0)
        else {
            Issue.record("no challenge")
            return
        }
        guard case .inserted = enrol(1, serial), case .challengeSpent = enrol(2, serial) else {
            Issue.record("a challenge has enrolled two keys, or none")
            return
        }
        // Nobody has the other key: that is found out once, and then known.
        let stranger = KeyRecord.sample(2).keyID
        guard case .absent = before.find(stranger) else {
            Issue.record("not absent")
            return
        }
        let ticket = try #require(before.lookUp(stranger))
        while log.all.isEmpty { try after.keys.committer.flush() }
        expectEqual(log.all.map(\.ticket), [ticket])
        expectEqual(log.all.map(\.decision), [.admitted])
        guard case .unknown = before.find(stranger),
            case .known = before.find(
                KeyRecord.sample(1).keyID
            )
        else {
            Issue.record("not found out")
            return
        }
    }

    // MARK: Sessions and tokens

    private static func evidence() -> VerifiedEvidence {
        VerifiedEvidence(
            app: AppIDHash(appID: "ABCDE12345.com.example.shop"),
            counter: SignCounter(rawValue: 3)
        )
    }

    private func session(
        _ decider: Decider,
        _ opened: SessionTable.Opened,
        now: Int64 = 1_000
    ) -> Session? {
        guard case .live(let session) = decider.findSession(opened.id.span, now: now) else {
            return nil
        }
        return session
    }

    private func number(_ value: UInt64) throws -> SequenceNumber {
        try #require(SequenceNumber(value))
    }

    @Test func `each number of a session is used once, whichever process is asked`() throws {
        let keyID = KeyRecord.sample(1).keyID
        let journal = MemoryJournal()
        let before = Decider(
            keys: try KeyTable(journal: journal),
            challenges: ChallengeIssuer(capacity: 1_024),
            sessions: SessionTable()
        )
        let opened = before.openSession(keyID, Self.evidence(), now: 1_000)
        // Found before the hand-over: its content comes after it.
        let held = try #require(session(before, opened))
        #expect(before.use(try number(1), of: held))
        let after = try Bench.successor(of: before, on: journal)
        before.handOver(to: Line(SuccessorService(after, tokens: Tokens())))
        let found = try #require(session(before, opened))
        let own = try #require(session(after, opened))
        expectEqual(found.keyID, keyID)
        expectEqual(found.evidence.app, own.evidence.app)
        let line = Array("x".utf8)
        expectEqual(found.signature(of: line.span), own.signature(of: line.span))
        let places = [(before, held), (before, found), (after, own)]
        for (decider, session) in places {
            #expect(!decider.use(try number(1), of: session))
        }
        for (place, value) in zip(places, UInt64(2)...4) {
            #expect(place.0.use(try number(value), of: place.1))
        }
        for (decider, session) in places {
            for value in UInt64(1)...4 {
                #expect(!decider.admits(try number(value), of: session))
            }
            #expect(decider.admits(try number(5), of: session))
        }
        // Opened here, and good there.
        let fresh = before.openSession(keyID, Self.evidence(), now: 1_000)
        let there = try #require(session(after, fresh))
        expectEqual(there.keyID, keyID)
        guard case .expired = before.findSession(opened.id.span, now: 1_600) else {
            Issue.record("not expired")
            return
        }
        expectEqual(after.sessions.opened, 2)
    }

    @Test func `when the next process has gone, no number is admitted`() throws {
        let key = KeyRecord.sample(1)
        let bench = try Bench([key])
        let opened = bench.after.openSession(key.keyID, Self.evidence(), now: 1_000)
        bench.handOver()
        let held = try #require(session(bench.before, opened))
        bench.line.cut()
        #expect(!bench.before.admits(try number(1), of: held))
        #expect(!bench.before.use(try number(1), of: held))
        #expect(session(bench.before, opened) == nil)
        // What is opened meanwhile is over.
        let dead = bench.before.openSession(key.keyID, Self.evidence(), now: 1_000)
        #expect(dead.id != opened.id)
        #expect(session(bench.after, dead) == nil)
        let own = try #require(session(bench.after, opened))
        #expect(bench.after.use(try number(1), of: own))
    }

    @Test func `a token is used once by both, and free again when it was not accepted`() throws {
        let bench = try Bench([])
        let (token, other) = (SHA256.digest(of: [1]), SHA256.digest(of: [2]))
        // Before the hand-over the caller's memory is all there is.
        for _ in 0..<2 { expectEqual(bench.before.claim(token, now: 0), .free) }
        bench.handOver()
        expectEqual(bench.before.claim(token, now: 0), .free)
        expectEqual(bench.before.claim(token, now: 0), .used)
        expectEqual(bench.tokens.claim(other, now: 0), .free)
        expectEqual(bench.before.claim(other, now: 0), .used)
        bench.before.release(token)
        expectEqual(bench.before.claim(token, now: 0), .free)
        let spent = SpentToken(token, end: 1_000)
        for outcome in [SpendOutcome.fresh, .spent] {
            let done = DispatchSemaphore(value: 0)
            let box = Box<SpendOutcome>()
            bench.before.spend(spent) {
                box.set($0)
                done.signal()
            }
            done.wait()
            expectEqual(box.value, outcome)
        }
    }
}
