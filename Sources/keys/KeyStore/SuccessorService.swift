internal import DeviceKey
package import Encodings
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
            try answer(kind, from: &bytes, reply)
        } catch {
            reply([])
        }
    }

    private func answer(
        _ kind: KeyTable.Question,
        from bytes: inout ByteReader,
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

// After the hand-over this process asks its successor about each key and each use.
extension KeyTable {
    /// Queries. The raw value is the first byte; those of challenges have lower ones.
    fileprivate enum Question: UInt8 {
        case find = 32
        case peek, consume, enrol, isEnrolling, lookUp, spend
    }

    /// From now on the successor may read the store ahead, until ``endTrail()`` or a hand-over.
    package func beginTrail() { journal.beginTrail() }

    /// No other process reads ahead any more.
    package func endTrail() { journal.endTrail() }

    /// Stops writing, for the state of a hand-over, which ``handOver(to:)`` or ``goOn()`` ends.
    /// Blocks until all waiting changes are durable. The table is not used meanwhile.
    ///
    /// - Returns: the successor's lease of the store; `nil` where there is none.
    /// - Throws: when a change can't be written, or the changes of others can't be read.
    package func stopWriting() throws(JournalError) -> StoreLease? {
        if let readFault { throw readFault }
        try committer.flush()
        return journal.lend()
    }

    /// Continues to write: the hand-over has failed.
    package func goOn() throws(JournalError) {
        try journal.takeBack()
        // The other process may have confirmed changes of commands. If they can't be read, the
        // table admits nothing. A journal that decides knows them with each use.
        if journal.decides == .inMemory { _ = refresh() }
    }

    /// Gives up the store, which the successor has now.
    package func leaveStore() { journal.leave() }

    /// From now on the successor decides, with each ticket. No change may wait for the writer, and
    /// the journal must be lent.
    package func handOver(to successor: any Successor) { self.successor.give(to: successor) }

    private static func writer(_ question: Question) -> ByteWriter {
        var out = ByteWriter()
        out.byte(question.rawValue)
        return out
    }

    func find(_ keyID: KeyID, by successor: any Successor) -> Finding {
        var out = Self.writer(.find)
        keyID.write(to: &out)
        let finding = successor.ask(out.bytes).flatMap { answer in
            try? Finding(from: answer, apps: apps)
        }
        return finding ?? .unavailable
    }

    /// What both ``peek(_:counter:rule:challenge:issuer:)`` and
    /// ``consume(_:counter:rule:challenge:issuer:now:durability:whenFailing:)`` are about.
    struct Use {
        var keyID: KeyID
        var counter: SignCounter?
        var rule: StoreCounterRule
        var challenge: ChallengeSerial?

        func write(to out: inout ByteWriter) {
            keyID.write(to: &out)
            out.optional(counter) { $1.write(to: &$0) }
            rule.write(to: &out)
            out.optional(challenge) { $1.write(to: &$0) }
        }
    }

    func peek(_ use: Use, by successor: any Successor) -> ConsumeDecision {
        var out = Self.writer(.peek)
        use.write(to: &out)
        return Self.decision(successor.ask(out.bytes))
    }

    /// Asks for a use. The answer comes like that of a commit, with the ticket.
    func consume(
        _ use: Use,
        now: Int64,
        durability: Durability,
        whenFailing: FailingStore,
        by successor: any Successor
    ) -> ConsumeOutcome {
        var out = Self.writer(.consume)
        use.write(to: &out)
        out.number(now)
        out.flag(durability == .awaited)
        out.flag(whenFailing == .useInMemory)
        return .pending(ticket(for: out.bytes, by: successor))
    }

    /// Looks up a key. The answer comes like that of a commit, with the ticket.
    func lookUp(_ keyID: KeyID, by successor: any Successor) -> CommitTicket {
        var out = Self.writer(.lookUp)
        keyID.write(to: &out)
        return ticket(for: out.bytes, by: successor)
    }

    /// Asks for a decision with a ticket. Queries are sent in the order of their tickets, and
    /// answers come in that order.
    private func ticket(for question: [UInt8], by successor: any Successor) -> CommitTicket {
        asking.withLock { _ in
            let ticket = committer.ticketOfSuccessor()
            successor.ask(question) { [committer] answer in
                let report = CommitReport(ticket...ticket, all: Self.decision(answer))
                committer.tell(report)
            }
            return ticket
        }
    }

    /// - challenge: spent with the enrolment, where the journal decides.
    func enrol(
        _ record: KeyRecord,
        _ challenge: ChallengeSerial?,
        by successor: any Successor,
        completion: @escaping @Sendable (EnrolOutcome) -> Void
    ) {
        var out = Self.writer(.enrol)
        record.write(to: &out)
        out.optional(challenge) { $1.write(to: &$0) }
        successor.ask(out.bytes) { answer in
            completion(EnrolOutcome(from: answer ?? [], record.keyID))
        }
    }

    func spend(
        _ token: SpentToken,
        by successor: any Successor,
        _ completion: @escaping @Sendable (SpendOutcome) -> Void
    ) {
        var out = Self.writer(.spend)
        token.write(to: &out)
        successor.ask(out.bytes) { answer in
            completion(answer?.first.flatMap(SpendOutcome.init) ?? .failed)
        }
    }

    func isEnrolling(_ keyID: KeyID, by successor: any Successor) -> Bool {
        var out = Self.writer(.isEnrolling)
        keyID.write(to: &out)
        return successor.ask(out.bytes)?.first == 1
    }

    private static func decision(_ answer: [UInt8]?) -> ConsumeDecision {
        guard let answer else { return .unavailable }
        var bytes = ByteReader(answer)
        return (try? ConsumeDecision(from: &bytes)) ?? .unavailable
    }
}

extension KeyTable.Finding {
    func bytes(_ appID: (AppNumber) -> String) -> [UInt8] {
        var out = ByteWriter()
        switch self {
        case .unavailable: out.byte(0)
        case .unknown: out.byte(1)
        case .known(let key):
            out.byte(2)
            key.write(to: &out, appID: appID(key.app))
        case .outdated(let key):
            out.byte(3)
            key.write(to: &out, appID: appID(key.app))
        case .absent: out.byte(4)
        }
        return out.bytes
    }

    init(from bytes: [UInt8], apps: AppNumbers) throws(ByteReader.Fault) {
        var bytes = ByteReader(bytes)
        switch try bytes.byte() {
        case 0: self = .unavailable
        case 1: self = .unknown
        case 2: self = .known(try StoredKey(from: &bytes, apps: apps))
        case 3: self = .outdated(try StoredKey(from: &bytes, apps: apps))
        case 4: self = .absent
        default: throw ByteReader.Fault()
        }
    }
}

extension KeyTable.Use {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        keyID = try KeyID(from: &bytes)
        counter = try bytes.optional { (bytes) throws(ByteReader.Fault) in
            try SignCounter(from: &bytes)
        }
        rule = try StoreCounterRule(from: &bytes)
        challenge = try bytes.optional { (bytes) throws(ByteReader.Fault) in
            try ChallengeSerial(from: &bytes)
        }
    }
}
