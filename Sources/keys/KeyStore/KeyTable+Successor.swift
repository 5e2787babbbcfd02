internal import DeviceKey
package import Encodings
internal import Synchronization
internal import Tokens

// After the hand-over this process asks its successor about each key and each use.
extension KeyTable {
    /// Queries. The raw value is the first byte; those of challenges have lower ones.
    enum Question: UInt8 {
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
