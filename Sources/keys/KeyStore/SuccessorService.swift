internal import DeviceKey
internal import Encodings
internal import Synchronization
package import Tokens

/// Answers the predecessor's queries about keys and challenges.
///
/// Uses of counters are answered in the order of their queries. Those that wait for the disk are
/// answered with the commit.
package final class SuccessorService: CommitListener {
    /// Takes the answer for ``Successor``'s caller; empty where a query can't be read.
    package typealias Reply = @Sendable ([UInt8]) -> Void

    private struct Waiting {
        /// `nil` once it is decided.
        var ticket: CommitTicket?
        var decision = ConsumeDecision.unavailable
        let reply: Reply
    }

    private let keys: KeyTable
    private let issuer: ChallengeIssuer
    /// Uses without an answer so far, in their order.
    private let waiting = Mutex<[Waiting]>([])

    /// Answers from this process's keys and challenges.
    package init(_ keys: KeyTable, _ issuer: ChallengeIssuer) {
        self.keys = keys
        self.issuer = issuer
        keys.committer.register(self)
    }

    /// Answers a query. `reply` is called once, possibly before this returns, possibly on another
    /// thread; it must return at once.
    package func answer(_ question: [UInt8], _ reply: @escaping Reply) {
        if let answer = issuer.answer(question) { return reply(answer) }
        var bytes = ByteReader(question)
        do throws(ByteReader.Fault) {
            guard let kind = KeyTable.Question(rawValue: try bytes.byte()) else {
                throw ByteReader.Fault()
            }
            try answer(kind, &bytes, reply)
        } catch {
            reply([])
        }
    }

    private func answer(
        _ kind: KeyTable.Question,
        _ bytes: inout ByteReader,
        _ reply: @escaping Reply
    ) throws(ByteReader.Fault) {
        switch kind {
        case .find:
            let keyID = try KeyID(from: &bytes)
            // The predecessor may have a session of the key.
            reply(keys.findUnasked(keyID).bytes(keys.appID))
        case .isEnrolling: reply([keys.isEnrolling(try KeyID(from: &bytes)) ? 1 : 0])
        case .enrol:
            let record = try KeyRecord(from: &bytes)
            let challenge = try bytes.optional { (bytes) throws(ByteReader.Fault) in
                try ChallengeSerial(from: &bytes)
            }
            keys.enrol(record, spending: challenge) { outcome in
                var out = ByteWriter()
                outcome.write(to: &out)
                reply(out.bytes)
            }
        case .peek:
            let use = try KeyTable.Use(from: &bytes)
            let decision = keys.peek(
                use.keyID,
                counter: use.counter,
                rule: use.rule,
                challenge: use.challenge,
                issuer: issuer
            )
            reply(Self.bytes(decision))
        case .consume: try consume(&bytes, reply)
        case .lookUp: lookUp(try KeyID(from: &bytes), reply)
        case .spend: keys.spend(try SpentToken(from: &bytes)) { reply([$0.rawValue]) }
        }
    }

    private func lookUp(_ keyID: KeyID, _ reply: @escaping Reply) {
        waiting.withLock { waiting in
            waiting.append(Waiting(ticket: keys.lookUp(keyID), reply: reply))
            Self.answerFront(of: &waiting)
        }
        keys.kick()
    }

    private func consume(
        _ bytes: inout ByteReader,
        _ reply: @escaping Reply
    ) throws(ByteReader.Fault) {
        let use = try KeyTable.Use(from: &bytes)
        let now = try bytes.number()
        let isAwaited = try bytes.flag()
        let usesMemory = try bytes.flag()
        // One lock from the use to its place in the queue: its commit may end at once.
        waiting.withLock { waiting in
            let outcome = keys.consume(
                use.keyID,
                counter: use.counter,
                rule: use.rule,
                challenge: use.challenge,
                issuer: issuer,
                now: now,
                durability: isAwaited ? .awaited : .behind,
                whenFailing: usesMemory ? .useInMemory : .decline
            )
            switch outcome {
            case .decided(let decision): waiting.append(Waiting(decision: decision, reply: reply))
            case .pending(let ticket): waiting.append(Waiting(ticket: ticket, reply: reply))
            }
            Self.answerFront(of: &waiting)
        }
        keys.kick()
    }

    package func commitEnded(_ report: CommitReport) {
        waiting.withLock { waiting in
            for index in waiting.indices {
                guard let ticket = waiting[index].ticket, report.tickets.contains(ticket) else {
                    continue
                }
                waiting[index].decision = report.decision(of: ticket)
                waiting[index].ticket = nil
            }
            Self.answerFront(of: &waiting)
        }
    }

    private static func answerFront(of waiting: inout [Waiting]) {
        let ready = waiting.prefix { $0.ticket == nil }
        for use in ready { use.reply(bytes(use.decision)) }
        waiting.removeFirst(ready.count)
    }

    private static func bytes(_ decision: ConsumeDecision) -> [UInt8] {
        var out = ByteWriter()
        decision.write(to: &out)
        return out.bytes
    }
}

/// The uses of one batch, from before the journal is asked until their tickets are answered.
struct DecidedUses {
    /// The decision about each, in the order of the tickets.
    private(set) var decisions: [(ticket: CommitTicket, decision: ConsumeDecision)] = []
    /// The uses that the journal is asked about.
    private(set) var asked: [CounterAdvance] = []
    /// Uses that are good in memory and unknown to the journal, which gets them later.
    private(set) var retained: [CounterChange] = []
    /// The number of uses that the journal has accepted.
    private(set) var usedCount = 0
    /// Why the journal could not decide one of them.
    private(set) var error: JournalError?
    /// The uses of `asked`, with their places in `decisions`.
    private var waiting: [(place: Int, use: WaitingUse)] = []

    /// Refuses the uses that have become impossible while they waited.
    init(_ uses: [PendingChanges.Use]) {
        for (place, use) in uses.enumerated() {
            if let refusal = use.waiting.refusal() {
                decisions.append((use.ticket, .refused(refusal)))
            } else {
                // Replaced by ``take(_:)``.
                decisions.append((use.ticket, .unavailable))
                asked.append(use.waiting.use)
                waiting.append((place, use.waiting))
            }
        }
    }

    var isEmpty: Bool { decisions.isEmpty }

    /// The journal has answered, or has failed for all of them.
    mutating func take(_ result: Result<[UseAnswer], JournalError>) {
        for (index, (place, use)) in waiting.enumerated() {
            let answer: UseAnswer =
                switch result {
                case .success(let answers): answers[index]
                case .failure(let error): .failed(error)
                }
            if case .used = answer { usedCount += 1 }
            if case .failed(let error) = answer { self.error = error }
            let (decision, change) = use.settle(answer)
            decisions[place].decision = decision
            if let change { retained.append(change) }
        }
    }
}

/// A use that waits for the journal's decision, and its change in memory after that.
struct WaitingUse {
    let use: CounterAdvance
    let shard: KeyTable.Shard
    let hash: UInt32
    let issuer: ChallengeIssuer

    /// Why it can't be good any more, as far as this process knows; `nil` when it may be.
    ///
    /// Checked just before the journal is asked. An earlier batch with the same counter may have
    /// failed: that counter was used in memory, and the journal does not know it yet.
    func refusal() -> ConsumeRefusal? {
        let refusal = shard.keys.withLock { keys in
            keys.find(use.keyID, hash: hash).flatMap { keys[$0].refusal(use) }
        }
        if let refusal { return refusal }
        return use.challenge.map(issuer.isSpent) == true ? .challengeSpent : nil
    }

    /// The journal has decided, and the table follows. When the journal has failed, it may have
    /// used them nevertheless. Then they are used in memory, if they are free there, so that the
    /// assertion is good once.
    ///
    /// - Returns: the decision, and the change that the journal gets later.
    func settle(_ answer: UseAnswer) -> (decision: ConsumeDecision, change: CounterChange?) {
        shard.keys.withLock { keys in
            guard let number = keys.find(use.keyID, hash: hash) else {
                return (Self.decision(answer), nil)
            }
            switch answer {
            case .used:
                // It does not matter whether the challenge is also remembered here.
                _ = use.challenge.map(issuer.spend)
                if let counter = use.counter { keys[number].counters.use(counter) }
                return (.admitted, nil)
            case .refused(let refusal):
                if refusal == .revoked { keys.set(.revoked, of: number) }
                return (.refused(refusal), nil)
            case .failed:
                if let refusal = keys[number].refusal(use) { return (.refused(refusal), nil) }
                let result = keys[number].use(
                    use.counter,
                    challenge: use.challenge,
                    issuer: issuer,
                    now: use.usedAt
                )
                switch result {
                case .success(let change): return (.unassured, change)
                case .failure(let refusal): return (.refused(refusal), nil)
                }
            }
        }
    }
}

extension WaitingUse {
    /// The decision about a key that was evicted meanwhile. If the journal has failed, nothing is
    /// used here.
    private static func decision(_ answer: UseAnswer) -> ConsumeDecision {
        switch answer {
        case .used: .admitted
        case .refused(let refusal): .refused(refusal)
        case .failed: .unavailable
        }
    }
}

extension KeyEntry {
    fileprivate func refusal(_ use: CounterAdvance) -> ConsumeRefusal? {
        refusal(use.counter, use.rule, hasChallenge: use.challenge != nil)
    }
}
