internal import DeviceKey
internal import Encodings
internal import Synchronization
internal import Tokens

/// Answers the predecessor's questions from this process's decider.
///
/// Uses of counters are answered in the order of their questions. Those that wait for the disk are
/// answered with the commit.
package final class SuccessorService: CommitListener {
    /// Takes the answer for ``Successor``'s caller; empty where a question can't be read.
    package typealias Reply = @Sendable ([UInt8]) -> Void

    private struct Waiting {
        /// `nil` once it is decided.
        var ticket: CommitTicket?
        var decision = ConsumeDecision.unavailable
        let reply: Reply
    }

    private let decider: Decider
    private let tokens: any TokenClaiming
    /// Uses without an answer so far, in their order.
    private let waiting = Mutex<[Waiting]>([])

    /// - tokens: the used tokens of devices.
    package init(_ decider: Decider, tokens: any TokenClaiming) {
        (self.decider, self.tokens) = (decider, tokens)
        decider.keys.committer.register(self)
    }

    /// Answers a question. `reply` is called once, possibly before this returns, possibly on
    /// another thread; it must return at once.
    package func answer(_ question: [UInt8], _ reply: @escaping Reply) {
        guard let question = try? DeciderQuestion(question) else { return reply([]) }
        switch question {
        case .issue(let purpose, let now): give(decider.issue(purpose, now: now), reply)
        case .examine(let text, let purpose, let now):
            give(decider.examine(text.span, purpose: purpose, now: now), reply)
        case .spend(let serial): give(decider.spend(serial), reply)
        case .takeBack(let serial):
            decider.takeBack(serial)
            give(true, reply)
        case .firstTry(let serial): give(decider.isFirstTry(of: serial), reply)
        // The predecessor may have a session of the key.
        case .find(let keyID): give(decider.findUnasked(keyID), reply)
        case .lookUp(let keyID):
            use(reply) {
                decider.lookUp(keyID).map(ConsumeOutcome.pending) ?? .decided(.unavailable)
            }
        case .isEnrolling(let keyID): give(decider.isEnrolling(keyID), reply)
        case .enrol(let record, let challenge):
            decider.enrol(record, spending: challenge) { [self] in give($0, reply) }
        case .peek(let use): give(decider.peek(use), reply)
        case .consume(let counterUse, let now, let isAwaited, let usesMemory):
            use(reply) {
                decider.consume(
                    counterUse,
                    now: now,
                    durability: isAwaited ? .awaited : .behind,
                    whenFailing: usesMemory ? .useInMemory : .decline
                )
            }
        case .openSession(let keyID, let evidence, let now):
            give(decider.openSession(keyID, evidence, now: now), reply)
        case .findSession(let text, let now):
            give(decider.findSession(text.span, now: now), reply)
        // The session may have been evicted since it was found: its numbers end with it.
        case .admits(let id, let number):
            let session = decider.sessions.live(id)
            give(session.map { decider.admits(number, of: $0) } ?? false, reply)
        case .use(let id, let number):
            let session = decider.sessions.live(id)
            give(session.map { decider.use(number, of: $0) } ?? false, reply)
        case .spendToken(let token): decider.spend(token) { [self] in give($0, reply) }
        case .claim(let token, let now): give(tokens.claim(token, now: now), reply)
        case .release(let token):
            tokens.release(token)
            give(true, reply)
        }
    }

    private func give(_ answer: some DeciderAnswer, _ reply: Reply) {
        reply(answer.bytes(at: decider))
    }

    /// Answers a use in its turn.
    private func use(_ reply: @escaping Reply, _ decide: () -> ConsumeOutcome) {
        // One lock from the use to its place in the queue: its commit may end at once.
        waiting.withLock { waiting in
            switch decide() {
            case .decided(let decision): waiting.append(Waiting(decision: decision, reply: reply))
            case .pending(let ticket): waiting.append(Waiting(ticket: ticket, reply: reply))
            }
            answerFront(of: &waiting)
        }
        decider.keys.kick()
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
            answerFront(of: &waiting)
        }
    }

    private func answerFront(of waiting: inout [Waiting]) {
        let ready = waiting.prefix { $0.ticket == nil }
        for use in ready { give(use.decision, use.reply) }
        waiting.removeFirst(ready.count)
    }
}
