package import HTTPWire
import KeyStore
package import Rules
package import Signatures

/// A call of `POST …/keys`, with all that its enrolment needs.
package struct EnrolmentCall: Sendable {
    package let content: [UInt8]
    /// The wall clock.
    package let now: UnixTime
    /// Nanoseconds of a clock that never goes back.
    package let tick: UInt64
    /// The client's address; `nil` where it is unknown.
    package var address: IPAddress?
    /// Nanoseconds until the gateway may verify for the client's address; `nil` when it may now.
    package var addressWait: UInt64?
    /// What the call shows for ``Enrolment/tokens``.
    package var tokens: [TokenProof: ShownTokens.Showing] = [:]
    /// Who checks tokens, by the index of the proof.
    package var tokenChecks: [any TokenChecker] = []

    package init(_ content: [UInt8], now: UnixTime, tick: UInt64) {
        (self.content, self.now, self.tick) = (content, now, tick)
    }

    /// Has the token checked that an enrolment awaits.
    ///
    /// - found: called exactly once, on any thread.
    fileprivate func check(
        _ awaited: Enrolment.AwaitedIntegrity,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) {
        let proof = awaited.rule.proof
        let text: [UInt8]
        switch tokens[proof] ?? .nothing {
        case .nothing: return found(.missing)
        case .unreadable: return found(.malformed)
        case .text(let shown): text = shown
        }
        // A gateway without the proof's check knows nothing of its tokens.
        guard tokenChecks.indices.contains(proof.index) else { return found(.unavailable) }
        let shown = ShownToken(
            text: text,
            proof: proof,
            address: address,
            binding: awaited.binding,
            now: now
        )
        if case .known(let finding) = tokenChecks[proof.index].check(shown, found) {
            found(finding)
        }
    }
}

extension Enrolment {
    /// Takes the outcome of an enrolment, and what was found of its integrity token.
    package typealias Completion = @Sendable (Outcome, IntegrityNote?) -> Void

    /// The answer to a call of `POST …/keys`.
    package enum Answer: Sendable {
        case now(Outcome)
        /// The outcome depends on a commit. It comes once, on any thread, after this is called.
        case afterCommit(@Sendable (@escaping Completion) -> Void)
    }

    /// Enrols the key of a call: judges the call, has its integrity token checked where the app
    /// asks for one, and stores the key.
    package func enrol(_ call: EnrolmentCall) -> Answer {
        let step = examine(call)
        if case .ended(let outcome) = step { return .now(outcome) }
        return .afterCommit { [self] in perform(step, of: call, note: nil, $0) }
    }

    private func perform(
        _ step: Step,
        of call: EnrolmentCall,
        note: IntegrityNote?,
        _ ended: @escaping Completion
    ) {
        switch step {
        case .ended(let outcome): ended(outcome, note)
        case .check(let awaited):
            call.check(awaited) { [self] finding in
                let note = IntegrityNote(finding, awaited.rule)
                perform(checked(awaited, note, at: call.tick), of: call, note: note, ended)
            }
        case .store(let record, let serial):
            decider.enrol(record, spending: serial) { [self] outcome in
                perform(stored(outcome, spending: serial), of: call, note: note, ended)
            }
        }
    }
}
