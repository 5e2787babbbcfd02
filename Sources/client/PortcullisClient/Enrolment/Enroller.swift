import Crypto
import Foundation
import RequestBinding

/// Keeps the one key: enrols it when it is asked for, once for all who ask, and forgets it when it
/// is refused. Drives ``EnrolmentMachine``.
actor Enroller {
    /// What was asked of the service last, in case that its answer comes late.
    private struct Attesting {
        let keyID: String
        let hash: Data
        let work: TimedService.Work<Data>
    }

    private let configuration: PortcullisConfiguration
    private let service: TimedService
    private let calls: GatewayCalls
    private let events: EventHub
    private let records: RecordKeeper
    private let holder = LeaseHolder()
    private var context: Data?
    /// The enrolled key, as last known.
    private var key: String?
    /// Until when nothing is tried, as last known.
    private var hold: EnrolmentHold?
    private var running: SharedWork<KeyOutcome>?
    private var attesting: Attesting?
    /// Grows with each reset. What was begun before brings no key any more.
    private var generation = 0
    private var isClosed = false

    /// The most steps of one enrolment.
    private static let stepsMax = 32
    /// The time between two looks at a lease of another process, in seconds.
    private static let leaseLook: Double = 0.5

    init(
        _ configuration: PortcullisConfiguration,
        service: TimedService,
        calls: GatewayCalls,
        records: RecordKeeper,
        events: EventHub
    ) {
        self.configuration = configuration
        self.service = service
        self.calls = calls
        self.records = records
        self.events = events
        context = configuration.context
    }

    private var limits: PortcullisLimits { configuration.limits }
    private var now: Date { configuration.clock.now }

    // MARK: Asking

    /// The enrolled key. Without one, an enrolment begins or goes on, and is waited for.
    func keyID(within seconds: Double) async -> KeyOutcome {
        guard !isClosed else { return .none(.enrolling) }
        if let key { return .key(key) }
        guard service.service.isSupported else { return .none(.unsupported) }
        if let hold, hold.until > now { return .none(.enrolmentHeld(hold)) }
        let time = now.addingTimeInterval(seconds)
        let work = enrolment()
        return await work.value(until: time, by: configuration.clock) ?? .none(.enrolling)
    }

    /// Forgets a key that was refused, unless another one has taken its place.
    func forget(_ keyID: String, reason: String) async {
        if key == keyID { key = nil }
        let (limits, now, jitter) = (limits, now, configuration.random())
        let isForgotten = await records.change { record in
            var machine = EnrolmentMachine(record, limits: limits)
            let isForgotten = machine.forgot(keyID: keyID, now: now, jitter: jitter)
            return isForgotten ? machine.record : nil
        }
        switch isForgotten {
        case true?:
            hold = nil
            events.send(.keyForgotten(keyID: keyID, reason: reason))
        case false?: break
        case nil: events.send(.storeFailed)
        }
    }

    /// Forgets whatever key there is, and delays too. What Apple counts stays counted.
    func reset(context: Data?) async {
        (self.context, key, hold, attesting) = (context, nil, nil, nil)
        generation += 1
        let isForgotten = await records.change { record in
            var fresh = EnrolmentRecord(gateway: record.gateway)
            (fresh.attestations, fresh.countedKey) = (record.attestations, record.countedKey)
            return fresh
        }
        if isForgotten == nil { events.send(.storeFailed) }
    }

    /// Ends what waits; a lease that is held is worth nothing from now on.
    func close() {
        isClosed = true
        holder.retire()
        running?.end(with: .none(.enrolling))
        running = nil
    }

    // MARK: One enrolment for all

    private func enrolment() -> SharedWork<KeyOutcome> {
        if let running { return running }
        let work = SharedWork<KeyOutcome>()
        running = work
        let generation = generation
        Task {
            let outcome = await enrolled()
            if running === work { running = nil }
            if generation == self.generation { remember(outcome) }
            work.end(with: outcome)
        }
        return work
    }

    private func remember(_ outcome: KeyOutcome) {
        switch outcome {
        case .key(let keyID): (key, hold) = (keyID, nil)
        case .none(.enrolmentHeld(let hold)): self.hold = hold
        case .none: break
        }
    }

    private func enrolled() async -> KeyOutcome {
        while !isClosed {
            guard let kept = await records.read() else { return storeFailed() }
            if case .enrolled(let keyID) = kept.record.phase { return .key(keyID) }
            if holder.isKept(out: kept.record.lease, now: now, longest: limits.lease) {
                let look = now.addingTimeInterval(Self.leaseLook * (0.5 + configuration.random()))
                guard (try? await configuration.clock.wait(until: look)) != nil else { break }
            } else if let outcome = await enrolled(from: kept) {
                return outcome
            }
        }
        return .none(.enrolling)
    }

    /// Goes on from a record to its end; `nil` when another process changed it meanwhile.
    private func enrolled(from kept: RecordKeeper.Kept) async -> KeyOutcome? {
        var kept = kept
        var machine = EnrolmentMachine(kept.record, limits: limits)
        var action = machine.began(now: now)
        for _ in 0..<Self.stepsMax where !isClosed {
            var record = machine.record
            record.lease = action.isLast ? nil : holder.lease(until: now + limits.lease)
            switch await keep(record, kept) {
            case .kept(let new): kept = new
            case .lost: return nil
            // What Apple has attested is not given up because a disk is full.
            case .failed where record.progress >= 3: events.send(.storeFailed)
            case .failed: return storeFailed()
            }
            switch action {
            case .done(let keyID):
                events.send(.enrolled(keyID: keyID))
                return .key(keyID)
            case .stop(let hold):
                events.send(.enrolmentHeld(hold))
                return .none(.enrolmentHeld(hold))
            case .generateKey, .askChallenge, .attest, .register:
                action = await perform(action, &machine)
            }
        }
        return .none(.enrolling)
    }

    /// Writes a record. Where another process was faster, but knows less of the same key, it is
    /// written all the same.
    private func keep(
        _ record: EnrolmentRecord,
        _ kept: RecordKeeper.Kept
    ) async -> RecordKeeper.Writing {
        let writing = await records.replace(kept, with: record)
        guard case .lost = writing, record.progress >= 3 else { return writing }
        guard let theirs = await records.read() else { return .failed }
        guard theirs.record.keyID == record.keyID, theirs.record.progress < record.progress else {
            return .lost
        }
        return await records.replace(theirs, with: record)
    }

    private func storeFailed() -> KeyOutcome {
        events.send(.storeFailed)
        return .none(.storeUnavailable)
    }

    // MARK: Steps

    private func perform(
        _ action: EnrolmentMachine.Action,
        _ machine: inout EnrolmentMachine
    ) async -> EnrolmentMachine.Action {
        switch action {
        case .generateKey:
            switch await service.generateKey() {
            case .success(let keyID):
                events.send(.keyGenerated(keyID: keyID))
                return machine.keyGenerated(keyID)
            case .failure(let error):
                return machine.keyFailed(error, now: now, jitter: configuration.random())
            }
        case .askChallenge(let keyID):
            let context = context
            switch await calls.challenges(enrolling: keyID) {
            case .success(let answer):
                let grant = EnrolmentGrant(
                    challenge: answer.challenges[0],
                    context: context,
                    until: now.timeIntervalSince1970 + answer.lifetime
                )
                return machine.challengeReceived(grant, now: now)
            case .failure(let failure):
                return machine.challengeFailed(failure, now: now, jitter: configuration.random())
            }
        case .attest(let keyID, let grant):
            switch await attestation(keyID, Self.hash(grant)) {
            case .success(let object): return machine.attested(object, now: now)
            case .failure(let error):
                return machine.attestFailed(error, now: now, jitter: configuration.random())
            }
        case .register(let keyID, let grant, let object):
            switch await calls.register(keyID: keyID, grant, object: object) {
            case .success: return machine.registered()
            case .failure(let failure):
                return machine.registerFailed(failure, now: now, jitter: configuration.random())
            }
        case .done, .stop: return action
        }
    }

    /// Has the key attested, or waits for the call that was begun for the same key and hash.
    private func attestation(
        _ keyID: String,
        _ hash: Data
    ) async -> Result<Data, AttestationServiceError> {
        let time = now.addingTimeInterval(limits.serviceWait)
        let work: TimedService.Work<Data>
        if let attesting, attesting.keyID == keyID, attesting.hash == hash {
            work = attesting.work
        } else {
            events.send(.attestationRequested(keyID: keyID))
            work = service.attesting(keyID, hash)
            attesting = Attesting(keyID: keyID, hash: hash, work: work)
        }
        let result = await service.result(of: work, until: time)
        // A call that has ended is not waited for again.
        if work.hasEnded, attesting?.work === work { attesting = nil }
        return result
    }

    /// What Apple signs.
    private static func hash(_ grant: EnrolmentGrant) -> Data {
        let digest = grant.context.map { Array(SHA256.hash(data: $0)) }
        let bytes = EnrolmentLines.clientData(challenge: grant.challenge, contextDigest: digest)
        return Data(SHA256.hash(data: bytes))
    }
}

extension EnrolmentMachine.Action {
    /// Whether nothing follows.
    fileprivate var isLast: Bool {
        switch self {
        case .generateKey, .askChallenge, .attest, .register: false
        case .done, .stop: true
        }
    }
}
