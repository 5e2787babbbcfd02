internal import ByteCoding
package import Challenges
internal import DeviceKey
internal import Synchronization

/// Answers what the process before still has to know of keys and challenges.
///
/// Uses of counters are answered in the order in which they were asked, those that wait for the
/// disk with the commit.
package final class DecisionDesk: CommitListener {
    /// An answer, for ``Successor``'s asker; empty where a question can't be read.
    package typealias Reply = @Sendable ([UInt8]) -> Void

    private struct Waiting {
        /// `nil` once it is decided.
        var ticket: CommitTicket?
        var decision = ConsumeDecision.unavailable
        let reply: Reply
    }

    private let keys: KeyTable
    private let issuer: ChallengeIssuer
    /// Uses that are not answered yet, in their order.
    private let waiting = Mutex<[Waiting]>([])

    /// Answers from this process's keys and challenges.
    package init(_ keys: KeyTable, _ issuer: ChallengeIssuer) {
        self.keys = keys
        self.issuer = issuer
        keys.committer.register(self)
    }

    /// Answers a question. `reply` is called once, maybe before this returns, maybe on another
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
            // Whoever asks may have a session of the key.
            reply(keys.findUnasked(keyID).bytes(keys.appID))
        case .isEnrolling:
            reply([keys.isEnrolling(try KeyID(from: &bytes)) ? 1 : 0])
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
        // One lock from the use to its place in the row: its commit may end at once.
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
            case .decided(let decision):
                waiting.append(Waiting(decision: decision, reply: reply))
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
