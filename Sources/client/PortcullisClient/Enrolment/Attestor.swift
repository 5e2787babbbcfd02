import Foundation

/// Has keys attested, one at a time. A call whose answer comes late is not made again.
actor Attestor {
    /// What was asked of the service last.
    private struct Asked {
        let keyID: String
        let hash: Data
        let work: TimedService.Work<Data>
    }

    private let service: TimedService
    private let events: EventHub
    private var asked: Asked?

    init(service: TimedService, events: EventHub) {
        (self.service, self.events) = (service, events)
    }

    /// Has a key attested, or waits for the call that was begun for the same key and hash.
    func attestation(_ keyID: String, _ hash: Data) async -> Result<Data, AttestationServiceError> {
        let time = service.clock.now.addingTimeInterval(service.wait)
        // The call of an enrolment that a reset has ended.
        while let asked, asked.keyID != keyID || asked.hash != hash {
            _ = await service.result(of: asked.work, until: time)
            guard asked.work.hasEnded || service.clock.now >= time else {
                return .failure(.serverUnavailable)
            }
            if self.asked?.work === asked.work { self.asked = nil }
        }
        let work: TimedService.Work<Data>
        if let asked {
            work = asked.work
        } else {
            events.send(.attestationRequested(keyID: keyID))
            work = service.attesting(keyID, hash)
            asked = Asked(keyID: keyID, hash: hash, work: work)
        }
        let result = await service.result(of: work, until: time)
        // A call that has ended is not waited for again.
        if work.hasEnded, asked?.work === work { asked = nil }
        return result
    }
}
