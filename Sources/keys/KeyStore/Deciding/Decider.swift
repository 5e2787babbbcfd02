package import DeviceKey
internal import Encodings
package import RequestBinding
package import Signatures
internal import Synchronization
package import Tokens

/// Decides what is good once, and which keys are known. Whoever judges requests asks it, and not
/// its tables. Shared by all event loops.
///
/// Before a hand-over it asks this process's tables, which know of no other process. After it,
/// each question goes to the successor, whose ``SuccessorService`` asks the successor's decider. So
/// at any moment one process decides. Without an answer nothing is admitted.
package final class Decider: Sendable {
    /// Challenges have 56 characters, ids of sessions 44. A longer text is neither, and not sent.
    private static let textMax = 64

    package let keys: KeyTable
    package let challenges: ChallengeIssuer
    package let sessions: SessionTable
    private let place = SuccessorPlace()
    /// Held from taking a question's ticket until the question is sent.
    private let asking = Mutex<Void>(())

    package init(keys: KeyTable, challenges: ChallengeIssuer, sessions: SessionTable) {
        (self.keys, self.challenges, self.sessions) = (keys, challenges, sessions)
    }

    // MARK: Here or there

    /// From now on the successor decides. It must have read the state of all tables, nothing may
    /// have changed here since, no change may wait for the writer, and the journal must be lent.
    package func handOver(to successor: any Successor) { place.give(to: successor) }

    /// The successor's answer; `nil` where this process decides.
    ///
    /// - unanswered: what counts where the successor does not answer.
    @inline(__always)
    private func there<Answer: DeciderAnswer>(
        _ question: @autoclosure () -> DeciderQuestion,
        unanswered: @autoclosure () -> Answer
    ) -> Answer? {
        guard let successor = place.holder else { return nil }
        return Answer(answered: successor.ask(question().bytes), at: self) ?? unanswered()
    }

    /// The ticket with which the successor's answer comes, like that of a commit; `nil` where this
    /// process decides. Questions are sent in the order of their tickets, and answered in it.
    @inline(__always)
    private func ticket(_ question: @autoclosure () -> DeciderQuestion) -> CommitTicket? {
        guard let successor = place.holder else { return nil }
        let question = question().bytes
        return asking.withLock { _ in
            let ticket = keys.committer.ticketOfSuccessor()
            successor.ask(question) { [self] answer in
                let decision = ConsumeDecision(answered: answer, at: self) ?? .unavailable
                keys.committer.tell(CommitReport(ticket...ticket, all: decision))
            }
            return ticket
        }
    }

    /// Asks the successor without waiting; `false` where this process decides.
    private func asksLater<Answer: DeciderAnswer>(
        _ question: @autoclosure () -> DeciderQuestion,
        unanswered: Answer,
        _ completion: @escaping @Sendable (Answer) -> Void
    ) -> Bool {
        guard let successor = place.holder else { return false }
        successor.ask(question().bytes) { [self] answer in
            completion(Answer(answered: answer, at: self) ?? unanswered)
        }
        return true
    }

    // MARK: Keys and counters

    /// When a use with a ticket is decided. The successor decides at its commit.
    package var decides: DecisionMoment { place.holder == nil ? keys.decides : .atCommit }

    /// As ``KeyTable/find(_:)``.
    package func find(_ keyID: KeyID) -> KeyTable.Finding {
        there(.find(keyID), unanswered: .unavailable) ?? keys.find(keyID)
    }

    /// As ``KeyTable/findUnasked(_:)``.
    package func findUnasked(_ keyID: KeyID) -> KeyTable.Finding {
        there(.find(keyID), unanswered: .unavailable) ?? keys.findUnasked(keyID)
    }

    /// As ``KeyTable/lookUp(_:)``.
    package func lookUp(_ keyID: KeyID) -> CommitTicket? {
        ticket(.lookUp(keyID)) ?? keys.lookUp(keyID)
    }

    /// As ``KeyTable/isEnrolling(_:)``.
    package func isEnrolling(_ keyID: KeyID) -> Bool {
        there(.isEnrolling(keyID), unanswered: false) ?? keys.isEnrolling(keyID)
    }

    /// As ``KeyTable/enrol(_:spending:completion:)``.
    package func enrol(
        _ record: KeyRecord,
        spending challenge: ChallengeSerial? = nil,
        completion: @escaping @Sendable (EnrolOutcome) -> Void
    ) {
        guard
            !asksLater(.enrol(record, spending: challenge), unanswered: .failed, completion)
        else { return }
        keys.enrol(record, spending: challenge, completion: completion)
    }

    /// As ``KeyTable/peek(_:issuer:)``.
    package func peek(_ use: CounterUse) -> ConsumeDecision {
        there(.peek(use), unanswered: .unavailable) ?? keys.peek(use, issuer: challenges)
    }

    /// As ``KeyTable/consume(_:issuer:now:durability:whenFailing:)``.
    package func consume(
        _ use: CounterUse,
        now: Int64,
        durability: Durability = .awaited,
        whenFailing: FailingStore = .decline
    ) -> ConsumeOutcome {
        let ticket = ticket(
            .consume(
                use,
                now: now,
                isAwaited: durability == .awaited,
                usesMemory: whenFailing == .useInMemory
            )
        )
        if let ticket { return .pending(ticket) }
        return keys.consume(
            use,
            issuer: challenges,
            now: now,
            durability: durability,
            whenFailing: whenFailing
        )
    }

    // MARK: Challenges

    /// As ``ChallengeIssuer/issue(_:now:)``. A number of our own could equal one that the successor
    /// issues, so without it the challenge is one that has expired.
    package func issue(_ purpose: ChallengePurpose, now: Int64) -> [UInt8] {
        there(.issue(purpose, now: now), unanswered: challenges.expired(purpose, now: now))
            ?? challenges.issue(purpose, now: now)
    }

    /// As ``ChallengeIssuer/examine(_:purpose:now:)``.
    package func examine(
        _ text: Span<UInt8>,
        purpose: ChallengePurpose,
        now: Int64
    ) -> ChallengeIssuer.Examination {
        guard text.count <= Self.textMax else { return .unknown }
        return there(
            .examine(text.copy(0..<text.count), purpose, now: now),
            unanswered: .unknown
        ) ?? challenges.examine(text, purpose: purpose, now: now)
    }

    /// As ``ChallengeIssuer/spend(_:)``.
    package func spend(_ serial: ChallengeSerial) -> ChallengeIssuer.Spending {
        there(.spend(serial), unanswered: .noRoom) ?? challenges.spend(serial)
    }

    /// As ``ChallengeIssuer/takeBack(_:)``. Without an answer the challenge stays spent.
    package func takeBack(_ serial: ChallengeSerial) {
        if there(.takeBack(serial), unanswered: false) == nil { challenges.takeBack(serial) }
    }

    /// As ``ChallengeIssuer/isFirstTry(of:)``.
    package func isFirstTry(of serial: ChallengeSerial) -> Bool {
        there(.firstTry(serial), unanswered: false) ?? challenges.isFirstTry(of: serial)
    }

    // MARK: Sessions

    /// As ``SessionTable/open(_:_:now:)``. Without an answer the session is over: its client opens
    /// another.
    package func openSession(
        _ keyID: KeyID,
        _ evidence: VerifiedEvidence,
        now: Int64
    ) -> SessionTable.Opened {
        there(.openSession(keyID, evidence, now: now), unanswered: sessions.over(now: now))
            ?? sessions.open(keyID, evidence, now: now)
    }

    /// As ``SessionTable/find(_:now:)``.
    package func findSession(_ text: Span<UInt8>, now: Int64) -> SessionTable.Finding {
        guard text.count <= Self.textMax else { return .unknown(.foreign) }
        return there(
            .findSession(text.copy(0..<text.count), now: now),
            unanswered: .unknown(.foreign)
        ) ?? sessions.find(text, now: now)
    }

    /// Whether a sequence number of a session is free now.
    package func admits(_ number: SequenceNumber, of session: Session) -> Bool {
        there(.admits(session.idBytes, number), unanswered: false) ?? session.admits(number)
    }

    /// Uses a sequence number, as ``Session/use(_:)``.
    package func use(_ number: SequenceNumber, of session: Session) -> Bool {
        there(.use(session.idBytes, number), unanswered: false) ?? session.use(number)
    }

    // MARK: Tokens

    /// As ``KeyTable/spend(_:completion:)``.
    package func spend(
        _ token: SpentToken,
        completion: @escaping @Sendable (SpendOutcome) -> Void
    ) {
        guard !asksLater(.spendToken(token), unanswered: .failed, completion) else { return }
        keys.spend(token, completion: completion)
    }

    /// Whether a device's token is free, as far as the caller's own memory does not know. Before a
    /// hand-over that memory is all there is.
    ///
    /// - now: second of the monotonic clock, which is the same in all processes of a machine.
    package func claim(_ token: SHA256Digest, now: Int64) -> TokenClaim {
        there(.claim(token, now: now), unanswered: .full) ?? .free
    }

    /// Apple did not accept a token that was claimed. Without an answer it stays used.
    package func release(_ token: SHA256Digest) {
        _ = asksLater(.release(token), unanswered: false) { (_: Bool) in }
    }
}
