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
