import AppAttest
import DeviceKey
import Encodings
import KeyStore
import RequestBinding
import Synchronization
import TestSupport
import Tokens
import Verification

/// A process of a gateway, as far as it decides about replays: the real table of keys with its
/// writer, challenges, sessions, and the seam of an upgrade. It has no clock and no socket.
final class SimulatedGateway {
    /// The answer to a request.
    enum Answer: Equatable {
        case admitted
        case refused
        /// Decided by a commit.
        case waits(CommitTicket)
    }

    let store: SimulatedStore
    /// Decides about all that is judged here; after a hand-over its successor does.
    let decider: Decider
    private let judge: Judge
    private let log = TicketLog()

    /// - `clock`: for the knowledge of what others have changed.
    /// - `memory`: of the predecessor, at an upgrade.
    init(
        _ store: SimulatedStore,
        clock: @escaping @Sendable () -> ContinuousClock.Instant,
        memory: Memory = Memory()
    ) throws {
        self.store = store
        var limits = Committer.Limits()
        // The simulation says when something is written, and never a timer.
        limits.behindDelay = .seconds(86_400)
        limits.retryDelay = .seconds(86_400)
        limits.failuresMax = .max
        let keys = try KeyTable(journal: store, limits: limits, clock: clock)
        let challenges =
            try memory.challenges.map { try ChallengeIssuer(capacity: 1_024, goingOnFrom: $0) }
            ?? ChallengeIssuer(
                capacity: 1_024,
                secrets: .init(own: memory.secret, shared: memory.shared),
                epoch: memory.epoch
            )
        let sessions =
            try memory.sessions.map { try SessionTable(goingOnFrom: $0) } ?? SessionTable()
        decider = Decider(keys: keys, challenges: challenges, sessions: sessions)
        judge = Judge(apps: [], decider: decider)
        keys.committer.register(log)
    }

    /// What a process begins with.
    struct Memory {
        var challenges: [UInt8]?
        var sessions: [UInt8]?
        /// Drawn at each start, but for a mutation.
        var secret: [UInt8]?
        /// Of all gateways of a fleet.
        var shared: [SharedSecret] = []
        var epoch: UInt64 = 1
    }

    var keys: KeyTable { decider.keys }

    var memory: Memory {
        Memory(challenges: decider.challenges.state, sessions: decider.sessions.state)
    }

    /// Writes what waits.
    func commit() { try? keys.committer.flush() }

    /// The decision about a request that waited; `nil` while it waits.
    func decision(_ ticket: CommitTicket, of keyID: KeyID, isLate: Bool = true) -> Answer? {
        guard let decision = log.decision(of: ticket) else { return nil }
        guard isLate else { return decision == .admitted ? .admitted : .refused }
        return judge.keyCheck.late(decision, of: keyID) == .admitted ? .admitted : .refused
    }

    /// Judges a request whose signature is good, as `Judge` does with it.
    func judge(_ request: SignedRequest, now: Int64) -> Answer {
        switch request.proof {
        case .assertion(let counter, let rule, let challenge):
            return judge(request.keyID, counter, rule, challenge, now: now)
        case .session(let id, let number):
            guard case .live(let session) = decider.findSession(id.span, now: now) else {
                return .refused
            }
            guard case .known(let key) = decider.findUnasked(session.keyID), !key.isRevoked,
                decider.use(number, of: session)
            else { return .refused }
            return .admitted
        }
    }

    private func judge(
        _ keyID: KeyID,
        _ counter: SignCounter,
        _ rule: StoreCounterRule,
        _ challenge: [UInt8]?,
        now: Int64
    ) -> Answer {
        guard case .known(let key) = found(keyID), !key.isRevoked else { return .refused }
        var serial: ChallengeSerial?
        if let challenge {
            guard
                case .valid(let valid) = decider.examine(
                    challenge.span,
                    purpose: .assertion,
                    now: now
                )
            else { return .refused }
            serial = valid
        }
        let outcome = decider.consume(
            CounterUse(
                of: keyID,
                row: key.row,
                counter: counter,
                rule: rule,
                challenge: serial
            ),
            now: now,
            durability: challenge == nil ? .awaited : .behind
        )
        switch outcome {
        case .decided(let decision): return decision == .admitted ? .admitted : .refused
        case .pending(let ticket): return .waits(ticket)
        }
    }

    /// The finding about a key, after a look-up where the store has to be asked.
    func found(_ keyID: KeyID) -> KeyTable.Finding {
        guard case .absent = decider.find(keyID), decider.lookUp(keyID) != nil else {
            return decider.find(keyID)
        }
        commit()
        return decider.find(keyID)
    }

    /// Enrols a key. Returns whether the app was told that it is.
    func enrol(_ record: KeyRecord) -> Bool {
        let outcome = Mutex<EnrolOutcome?>(nil)
        decider.enrol(record) { answer in outcome.withLock { $0 = answer } }
        commit()
        guard !store.isDead else { return false }
        return switch outcome.withLock({ $0 }) {
        case .inserted, .existing: true
        case .revoked, .challengeSpent, .failed, nil: false
        }
    }
}

/// A request with a good signature. A recorded one is sent again as it is.
struct SignedRequest: Hashable {
    enum Proof: Hashable {
        case assertion(SignCounter, StoreCounterRule, challenge: [UInt8]?)
        case session(id: [UInt8], SequenceNumber)
    }

    /// Its place among all requests that were signed.
    let number: Int
    let keyID: KeyID
    let proof: Proof

    var isByAssertion: Bool {
        if case .assertion = proof { true } else { false }
    }
}
