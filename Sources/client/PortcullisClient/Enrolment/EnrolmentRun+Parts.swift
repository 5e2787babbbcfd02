import Foundation

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

/// One session that enrols, told apart from all others by a random text.
///
/// A lease whose holder is gone is worth nothing: one of this process that was let go, or one whose
/// process has ended.
final class LeaseHolder: Sendable {
    private static let living = Guarded<Set<String>>([])

    let name = UUID().uuidString
    private let process = ProcessInfo.processInfo.processIdentifier

    init() { Self.living.withLock { [name] in _ = $0.insert(name) } }

    deinit { retire() }

    /// Gives up all leases. Nothing else is needed for the last session of an app.
    func retire() { Self.living.withLock { [name] in _ = $0.remove(name) } }

    /// The longest lease, in seconds, whatever the limits of the process that made it.
    static let longest: Double = 3600
    /// How much longer a lease is at least than the longest step of an enrolment, in seconds.
    private static let margin: Double = 30

    /// A lease of this holder that covers one step of an enrolment.
    func lease(from now: Date, _ limits: PortcullisLimits) -> EnrolmentRecord.Lease {
        let step = max(limits.serviceWait.seconds, limits.callTime.seconds)
        let seconds = min(max(limits.lease.seconds, step + Self.margin), Self.longest)
        let until = now.timeIntervalSince1970 + seconds
        return EnrolmentRecord.Lease(holder: name, process: process, until: until)
    }

    /// Whether a lease keeps this holder from enrolling, now. One that ends later than the longest
    /// does was made before the clock was set back.
    func isKept(out lease: EnrolmentRecord.Lease?, now: Date) -> Bool {
        guard let lease, lease.holder != name else { return false }
        let rest = lease.until - now.timeIntervalSince1970
        guard rest > 0, rest <= Self.longest else { return false }
        guard lease.process == process else { return !Self.hasEnded(lease.process) }
        return Self.living.withLock { $0.contains(lease.holder) }
    }

    /// A signal 0 asks whether a process is there. One that may not be asked is there (EPERM).
    private static func hasEnded(_ process: Int32) -> Bool {
        process > 0 && kill(process, 0) == -1 && errno == ESRCH
    }
}
