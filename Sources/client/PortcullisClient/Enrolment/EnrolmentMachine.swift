import Foundation
import RequestBinding

/// From no key to an enrolled one: the states are those of the record, and each event returns what
/// is done next. The driver keeps the record before it does that.
///
/// ```
/// none ── keyGenerated ──▶ generated ── challengeReceived ──▶ generated with grant
///                                                                    │ attested
/// enrolled ◀── registered ── attested ◀──────────────────────────────┘
/// ```
///
/// * `serverUnavailable` keeps key and grant: Apple wants the same key and the same hash again.
/// * `unknownSystemFailure` keeps them the first time: it may pass, and another key would cost
///   another attestation. The second time another key is made, once in a day. Where that one fails
///   too, it stays, and is tried a few times a day: another key would not help the device
///   (firebase-ios-sdk #16256), and would cost as much again.
/// * Any other failure to attest, and a gateway that says `enrol`, ends the key. The first time in
///   a day a new one is made at once, later ones wait longer and longer.
/// * A device that fails twice in a way that lasts counts as broken until one of its keys is
///   attested. It is tried on.
/// * Everything else that fails keeps what there is and waits.
struct EnrolmentMachine: Sendable {
    /// What the driver does.
    enum Action: Equatable, Sendable {
        /// Have the service make a key.
        case generateKey
        /// Ask the gateway for a challenge for this key.
        case askChallenge(keyID: String)
        /// Have the service attest the key.
        case attest(keyID: String, EnrolmentGrant)
        /// Send the attestation to the gateway.
        case register(keyID: String, EnrolmentGrant, object: Data)
        /// Nothing more: the key is enrolled.
        case done(keyID: String)
        /// Nothing before a time.
        case stop(EnrolmentHold)
    }

    private(set) var record: EnrolmentRecord
    private let limits: PortcullisLimits

    static let day: Double = 86_400
    /// The time between two tries to attest a key, where the device fails, does not say why, and a
    /// day allows no other key because of that, in seconds.
    static let unexplainedDelay: Double = 21_600
    /// How much longer than `Retry-After` an enrolment waits at most, as a part of it.
    static let retrySpread: Double = 0.25
    /// The number of failures above which delays grow no more.
    private static let failuresMax = 32

    init(_ record: EnrolmentRecord, limits: PortcullisLimits) {
        (self.record, self.limits) = (record, limits)
    }

    // MARK: Events

    /// The record was read: goes on where it stands.
    mutating func began(now: Date) -> Action {
        forgetOld(now)
        switch record.phase {
        case .enrolled(let keyID): return .done(keyID: keyID)
        case .none, .generated, .attested: break
        }
        if let hold = hold(now: now) { return .stop(hold) }
        record.hold = nil
        // The hash of a challenge that has ended is useless. Apple gave nothing for it yet.
        if case .generated(let keyID, let grant?) = record.phase,
            grant.until <= now.timeIntervalSince1970
        {
            record.phase = .generated(keyID: keyID, nil)
        }
        switch record.phase {
        case .none: return withinCap(now) ?? .generateKey
        case .generated(let keyID, nil):
            return (keyID == record.countedKey ? nil : withinCap(now))
                ?? .askChallenge(keyID: keyID)
        case .generated(let keyID, let grant?): return .attest(keyID: keyID, grant)
        case .attested(let keyID, let grant, let object):
            return .register(keyID: keyID, grant, object: object)
        case .enrolled(let keyID): return .done(keyID: keyID)
        }
    }

    /// The service made a key.
    mutating func keyGenerated(_ keyID: String) -> Action {
        record.phase = .generated(keyID: keyID, nil)
        record.keyFailures = 0
        return .askChallenge(keyID: keyID)
    }

    /// The service made no key.
    mutating func keyFailed(_ error: AttestationServiceError, now: Date, jitter: Double) -> Action {
        countFailure(error)
        return stop(.serviceFailed(error), now: now, jitter: jitter)
    }

    /// The gateway admits this enrolment.
    mutating func challengeReceived(_ grant: EnrolmentGrant, now: Date) -> Action {
        guard case .generated(let keyID, nil) = record.phase else { return began(now: now) }
        record.phase = .generated(keyID: keyID, grant)
        // Counted before Apple is asked: a process that dies in between has asked.
        if keyID != record.countedKey {
            record.attestations.append(now.timeIntervalSince1970)
            record.countedKey = keyID
        }
        return .attest(keyID: keyID, grant)
    }

    /// The gateway gave no challenge.
    mutating func challengeFailed(_ failure: EndpointFailure, now: Date, jitter: Double) -> Action {
        stop(failure, now: now, jitter: jitter)
    }

    /// Apple attested the key.
    mutating func attested(_ object: Data, now: Date) -> Action {
        guard case .generated(let keyID, let grant?) = record.phase else { return began(now: now) }
        record.phase = .attested(keyID: keyID, grant, object: object)
        record.failures = 0
        record.deviceFailures = 0
        return .register(keyID: keyID, grant, object: object)
    }

    /// Apple did not attest the key.
    mutating func attestFailed(
        _ error: AttestationServiceError,
        now: Date,
        jitter: Double
    ) -> Action {
        countFailure(error)
        switch error {
        case .serverUnavailable: return stop(.appleUnavailable, now: now, jitter: jitter)
        case .invalidKey:
            record.phase = .none
            return lost(now: now, jitter: jitter)
        case .unknownSystemFailure where record.keyFailures == 0:
            record.keyFailures = 1
            return stop(.serviceFailed(error), now: now, jitter: jitter)
        case .unknownSystemFailure where hasGivenUpUnexplained(now):
            let delay = Self.unexplainedDelay * (0.5 + jitter / 2)
            return held(.serviceFailed(error), now.addingTimeInterval(delay))
        case .unknownSystemFailure:
            record.unexplained = now.timeIntervalSince1970
            record.phase = .none
            return stop(.serviceFailed(error), now: now, jitter: jitter)
        case .featureUnsupported, .invalidInput:
            record.phase = .none
            return stop(.serviceFailed(error), now: now, jitter: jitter)
        }
    }

    /// The gateway has the key.
    mutating func registered() -> Action {
        guard case .attested(let keyID, let grant, _) = record.phase else {
            preconditionFailure("EnrolmentMachine: registered without an attestation")
        }
        record.phase = .enrolled(keyID: keyID)
        record.hasContext = grant.context != nil
        record.failures = 0
        record.hold = nil
        return .done(keyID: keyID)
    }

    /// The gateway did not take the key.
    mutating func registerFailed(_ failure: EndpointFailure, now: Date, jitter: Double) -> Action {
        if case .refused(_, .enrol, _) = failure {
            record.phase = .none
            return lost(now: now, jitter: jitter)
        }
        return stop(failure, now: now, jitter: jitter)
    }

    /// Until when nothing is tried; `nil` for a hold that is over. One that ends later than any was
    /// made before the clock was set back, and counts as over.
    func hold(now: Date) -> EnrolmentHold? {
        let (told, own) = (limits.retryAfterMax.seconds, limits.enrolmentDelayMax.seconds)
        let longest = max(told, own, Self.day) * 1.25
        guard let hold = record.hold, hold.until > now,
            hold.until.timeIntervalSince(now) <= longest
        else { return nil }
        return hold
    }

    /// Forgets a key that the gateway or the device refused, if it is still the one.
    ///
    /// - Returns: whether it was.
    mutating func forgot(keyID: String, now: Date, jitter: Double) -> Bool {
        guard case .enrolled(keyID) = record.phase else { return false }
        record.phase = .none
        _ = lost(now: now, jitter: jitter)
        return true
    }

    // MARK: Users

    /// Whether a day allows another key in the place of the one that is there, if any.
    mutating func mayReplaceKey(now: Date) -> Bool {
        forgetOld(now)
        return record.phase == .none || record.attestations.count < limits.keysPerDay
    }

    /// Whether another key may take the place of one that the device signs nothing with: once in a
    /// day, where the day allows another.
    mutating func mayReplaceUnfit(now: Date) -> Bool {
        mayReplaceKey(now: now) && record.losses.isEmpty
    }

    /// Another key is wanted: empties the record, but for what Apple counts.
    ///
    /// - Parameters:
    ///   - keepsLast: whether a key stays that no other may replace today. One that is bound to a
    ///     context never does: it would speak for the user who has gone.
    ///   - now: the time.
    /// - Returns: whether the key was forgotten.
    mutating func reset(keepsLast: Bool, now: Date) -> Bool {
        let isKept = !mayReplaceKey(now: now) && keepsLast && !record.mayHaveContext
        var fresh = EnrolmentRecord(gateway: record.gateway)
        if isKept { (fresh.phase, fresh.hasContext) = (record.phase, record.hasContext) }
        (fresh.attestations, fresh.countedKey) = (record.attestations, record.countedKey)
        (fresh.deviceFailures, fresh.unexplained) = (record.deviceFailures, record.unexplained)
        record = fresh
        return !isKept
    }

    /// A user signed out. A key that would be bound to the user's context is given up. One that is
    /// enrolled stays.
    mutating func signedOut() {
        switch record.phase {
        case .generated, .attested:
            if record.mayHaveContext { (record.phase, record.hold) = (.none, nil) }
        case .none, .enrolled: break
        }
    }

    // MARK: Delays

    /// Counts a failure of the device. That Apple is not reached says nothing about it.
    private mutating func countFailure(_ error: AttestationServiceError) {
        guard error != .serverUnavailable else { return }
        record.deviceFailures = min(record.deviceFailures, Self.failuresMax) + 1
    }

    /// A key ended. The next one is made at once, unless keys were lost before in this day.
    private mutating func lost(now: Date, jitter: Double) -> Action {
        forgetOld(now)
        let before = record.losses.count
        record.losses.append(now.timeIntervalSince1970)
        guard before > 0 else {
            record.hold = nil
            return began(now: now)
        }
        // Longer than a failure of one call: each of these costs an attestation.
        return held(.keysLost, now.addingTimeInterval(delay(after: before + 3, jitter)))
    }

    private mutating func stop(_ failure: EndpointFailure, now: Date, jitter: Double) -> Action {
        let cause: EnrolmentHold.Cause
        let retryAfter: Double?
        switch failure {
        case .refused(_, .retryLater, let seconds): (cause, retryAfter) = (.throttled, seconds)
        case .refused(let reason, _, let seconds):
            // Nothing here mends it. The longest delay keeps asking cheap.
            cause = .refused(reason: reason)
            retryAfter = seconds ?? limits.enrolmentDelayMax.seconds
        case .unreachable(let seconds): (cause, retryAfter) = (.gatewayUnavailable, seconds)
        }
        guard let retryAfter else { return stop(cause, now: now, jitter: jitter) }
        record.failures = min(record.failures, Self.failuresMax) + 1
        // Up to a quarter more, so that a crowd that was told the same does not come back at once.
        let told = min(max(retryAfter, 0), limits.retryAfterMax.seconds)
        let seconds = told * (1 + jitter * Self.retrySpread)
        return held(cause, now.addingTimeInterval(max(seconds, 0.5 + jitter / 2)))
    }

    private mutating func stop(_ cause: EnrolmentHold.Cause, now: Date, jitter: Double) -> Action {
        let delay = delay(after: record.failures, jitter)
        record.failures = min(record.failures, Self.failuresMax) + 1
        return held(cause, now.addingTimeInterval(delay))
    }

    private mutating func held(_ cause: EnrolmentHold.Cause, _ until: Date) -> Action {
        let hold = EnrolmentHold(cause, until: until)
        record.hold = hold
        return .stop(hold)
    }

    /// Doubles with each failure, between half of it and the whole.
    private func delay(after failures: Int, _ jitter: Double) -> Double {
        let doubled = limits.enrolmentDelay.seconds * Double(1 << min(max(failures, 0), 20))
        return min(doubled, limits.enrolmentDelayMax.seconds) * (0.5 + jitter / 2)
    }

    /// Whether a key was given up in the last day because the device failed and did not say why.
    private func hasGivenUpUnexplained(_ now: Date) -> Bool {
        guard let time = record.unexplained else { return false }
        return min(time, now.timeIntervalSince1970) > now.timeIntervalSince1970 - Self.day
    }

    private mutating func withinCap(_ now: Date) -> Action? {
        guard record.attestations.count >= limits.keysPerDay else { return nil }
        let oldest = record.attestations.min() ?? now.timeIntervalSince1970
        return held(.dailyCap, Date(timeIntervalSince1970: oldest + Self.day))
    }

    /// Forgets what is older than a day. What is in the future was counted before the clock was set
    /// back: it counts as of now, so that it neither holds for ever nor makes room for more keys.
    private mutating func forgetOld(_ now: Date) {
        let now = now.timeIntervalSince1970
        let recent: ([Double]) -> [Double] = { times in
            times.map { min($0, now) }.filter { $0 > now - Self.day }
        }
        record.attestations = recent(record.attestations)
        record.losses = recent(record.losses)
    }
}

/// What came of asking for an enrolled key.
enum KeyOutcome: Hashable, Sendable {
    case key(String)
    case none(SentProof.Absence)
}
