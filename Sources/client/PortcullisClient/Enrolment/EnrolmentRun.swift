import Crypto
import Foundation
import RequestBinding

/// One enrolment, from the record as it stands to its end. Drives ``EnrolmentMachine``.
///
/// It goes on when no caller waits for it. Once it is stopped it writes nothing more, whatever the
/// service or the gateway still answers.
final class EnrolmentRun: Sendable {
    /// What came of going on from a record.
    private enum Ending {
        case outcome(KeyOutcome)
        /// Another process changed the record meanwhile.
        case lost
    }

    private let parts: Parts
    private let context: Data?
    private let isStopped = Guarded(false)
    /// Ends when the record was read and has no enrolled key: an enrolment takes longer. It ends
    /// with the run at the latest.
    let reading = SharedWork<Void>()

    /// The most steps of one enrolment.
    private static let stepsMax = 32
    /// The time between two looks at a lease of another process, in seconds.
    static let leaseLook: Double = 0.5
    /// How often a record is written that the store does not take.
    static let lossesMax = 8
    /// The first delay after the second of such losses, and the longest one, in seconds.
    private static let lossDelay: Double = 0.05
    private static let lossDelayMax: Double = 2

    init(_ parts: Parts, context: Data?) { (self.parts, self.context) = (parts, context) }

    /// Nothing more is written.
    func stop() {
        isStopped.withLock { $0 = true }
        reading.end(with: ())
    }

    private var hasStopped: Bool { isStopped.withLock { $0 } }
    private var configuration: PortcullisConfiguration { parts.configuration }
    private var limits: PortcullisLimits { configuration.limits }
    private var now: Date { configuration.clock.now }

    /// The key, or why there is none.
    func outcome() async -> KeyOutcome {
        var losses = 0
        while !hasStopped {
            guard let kept = await parts.records.read() else { return storeFailed() }
            if case .enrolled(let keyID) = kept.record.phase {
                let reason = parts.refused.withLock { $0.reason(keyID) }
                guard let reason else { return .key(keyID) }
                // It was refused while it was read, or could not be forgotten then.
                guard await parts.forget(keyID, reason: reason) != nil else { return storeFailed() }
                losses += 1
            } else if let hold = contextHold {
                parts.events.send(.enrolmentHeld(hold))
                return .none(.enrolmentHeld(hold))
            } else if parts.holder.isKept(out: kept.record.lease, now: now) {
                reading.end(with: ())
                guard await wait(Self.leaseLook * (0.5 + configuration.random())) else { break }
            } else {
                switch await ending(from: kept) {
                case .outcome(let outcome): return outcome
                case .lost: losses += 1
                }
            }
            guard losses < Self.lossesMax else {
                parts.events.send(.storeContended)
                return .none(.storeUnavailable)
            }
            if losses > 1 {
                let delay = Self.lossDelay * Double(1 << losses)
                let jitter = 0.5 + configuration.random() / 2
                guard await wait(min(delay, Self.lossDelayMax) * jitter) else { break }
            }
        }
        return .none(.enrolling)
    }

    /// A context that the gateway would refuse is refused before Apple is asked.
    private var contextHold: EnrolmentHold? {
        guard let context, !(1...EnrolmentLines.contextBytesMax).contains(context.count) else {
            return nil
        }
        return EnrolmentHold(.contextUnfit, until: .distantFuture)
    }

    private func wait(_ seconds: Double) async -> Bool {
        let time = now.addingTimeInterval(seconds)
        return (try? await configuration.clock.wait(until: time)) != nil
    }

    // MARK: From a record to its end

    private func ending(from kept: RecordKeeper.Kept) async -> Ending {
        var kept = kept
        var machine = EnrolmentMachine(kept.record, limits: limits)
        var action = machine.began(now: now)
        if !action.isLast { reading.end(with: ()) }
        for _ in 0..<Self.stepsMax {
            var record = machine.record
            record.lease = action.isLast ? nil : parts.holder.lease(from: now, limits)
            guard !hasStopped else { break }
            switch await keep(record, kept) {
            case .kept(let new): kept = new
            case .lost: return .lost
            // What Apple has attested is not given up because a disk is full.
            case .failed where record.progress >= 3: parts.events.send(.storeFailed)
            case .failed: return .outcome(storeFailed())
            }
            guard !hasStopped else { break }
            switch action {
            case .done(let keyID):
                parts.events.send(.enrolled(keyID: keyID))
                return .outcome(.key(keyID))
            case .stop(let hold):
                parts.events.send(.enrolmentHeld(hold))
                return .outcome(.none(.enrolmentHeld(hold)))
            case .generateKey, .askChallenge, .attest, .register:
                action = await perform(action, &machine)
            }
        }
        return .outcome(.none(.enrolling))
    }

    /// Writes a record. Where another process was faster, but knows less of the same key, it is
    /// written all the same.
    private func keep(
        _ record: EnrolmentRecord,
        _ kept: RecordKeeper.Kept
    ) async -> RecordKeeper.Writing {
        let writing = await parts.records.replace(kept, with: record)
        guard case .lost = writing, record.progress >= 3 else { return writing }
        guard let theirs = await parts.records.read() else { return .failed }
        guard theirs.record.keyID == record.keyID, theirs.record.progress < record.progress,
            !hasStopped
        else { return .lost }
        return await parts.records.replace(theirs, with: record)
    }

    private func storeFailed() -> KeyOutcome {
        parts.events.send(.storeFailed)
        return .none(.storeUnavailable)
    }

    // MARK: Steps

    private func perform(
        _ action: EnrolmentMachine.Action,
        _ machine: inout EnrolmentMachine
    ) async -> EnrolmentMachine.Action {
        switch action {
        case .generateKey:
            switch await parts.service.generateKey() {
            case .success(let keyID):
                parts.events.send(.keyGenerated(keyID: keyID))
                return machine.keyGenerated(keyID)
            case .failure(let error):
                return machine.keyFailed(error, now: now, jitter: configuration.random())
            }
        case .askChallenge(let keyID):
            switch await parts.calls.challenges(enrolling: keyID) {
            case .success(let answer):
                let grant = EnrolmentGrant(
                    challenge: answer.challenges[0],
                    context: context,
                    until: now.timeIntervalSince1970 + answer.expires_in
                )
                return machine.challengeReceived(grant, now: now)
            case .failure(let failure):
                return machine.challengeFailed(failure, now: now, jitter: configuration.random())
            }
        case .attest(let keyID, let grant):
            switch await parts.attestor.attestation(keyID, Self.hash(grant)) {
            case .success(let object): return machine.attested(object, now: now)
            case .failure(let error):
                return machine.attestFailed(error, now: now, jitter: configuration.random())
            }
        case .register(let keyID, let grant, let object):
            switch await parts.calls.register(keyID: keyID, grant, object: object) {
            case .success: return machine.registered()
            case .failure(let failure):
                return machine.registerFailed(failure, now: now, jitter: configuration.random())
            }
        case .done, .stop: return action
        }
    }

    /// What Apple signs.
    private static func hash(_ grant: EnrolmentGrant) -> Data {
        let digest = grant.context.map { Array(SHA256.hash(data: $0)) }
        let bytes = EnrolmentLines.clientData(challenge: grant.challenge, contextDigest: digest)
        return Data(SHA256.hash(data: bytes))
    }
}

extension EnrolmentRun {
    /// What every enrolment of a session uses.
    struct Parts: Sendable {
        let configuration: PortcullisConfiguration
        let service: TimedService
        let attestor: Attestor
        let calls: GatewayCalls
        let records: RecordKeeper
        let events: EventHub
        let holder = LeaseHolder()
        let refused = Guarded(RefusedKeys())

        init(
            _ configuration: PortcullisConfiguration,
            service: TimedService,
            calls: GatewayCalls,
            records: RecordKeeper,
            events: EventHub
        ) {
            (self.configuration, self.service, self.calls) = (configuration, service, calls)
            (self.records, self.events) = (records, events)
            attestor = Attestor(service: service, events: events)
        }

        /// Whether a key was refused in this process.
        func isRefused(_ keyID: String) -> Bool { refused.withLock { $0.reason(keyID) } != nil }

        /// Forgets a key that was refused, unless another one has taken its place.
        ///
        /// - Returns: whether it was the one; `nil` when the store failed.
        func forget(_ keyID: String, reason: String) async -> Bool? {
            refused.withLock { $0.add(keyID, reason: reason) }
            let (limits, now) = (configuration.limits, configuration.clock.now)
            let jitter = configuration.random()
            let isForgotten = await records.change { record in
                var machine = EnrolmentMachine(record, limits: limits)
                let isForgotten = machine.forgot(keyID: keyID, now: now, jitter: jitter)
                return isForgotten ? machine.record : nil
            }
            if isForgotten == true { events.send(.keyForgotten(keyID: keyID, reason: reason)) }
            return isForgotten
        }
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
