import Foundation

/// A service whose calls end after a while. A call that takes longer counts as `serverUnavailable`,
/// and goes on by itself.
struct TimedService: Sendable {
    typealias Work<Value: Sendable> = SharedWork<Result<Value, AttestationServiceError>>

    let service: any AttestationService
    let clock: any ClientClock
    /// How long a key or an attestation may take, in seconds.
    let wait: Double
    /// A number from 0 up to 1, for jitter.
    let random: @Sendable () -> Double
    let events: EventHub
    /// When a request tries more than once again to be signed; `nil` for now.
    private let lull = Guarded<Date?>(nil)

    /// How often the service is asked for one assertion that it can't make now.
    static let signingTriesMax = 4
    /// Half of the first delay between two of them, in seconds.
    static let retryDelay: Double = 0.125
    /// How long requests try only once after one that tried in vain, in seconds.
    static let lullTime: Double = 10

    init(
        _ service: any AttestationService,
        _ configuration: PortcullisConfiguration,
        events: EventHub
    ) {
        (self.service, self.events) = (service, events)
        (clock, random) = (configuration.clock, configuration.random)
        wait = configuration.limits.serviceWait.seconds
    }

    func generateKey() async -> Result<String, AttestationServiceError> {
        let time = clock.now.addingTimeInterval(wait)
        let work = Work<String>()
        Task {
            do throws(AttestationServiceError) {
                work.end(with: .success(try await service.generateKey()))
            } catch {
                work.end(with: .failure(error))
            }
        }
        return await result(of: work, until: time)
    }

    /// Begins to have a key attested.
    func attesting(_ keyID: String, _ hash: Data) -> Work<Data> {
        let work = Work<Data>()
        Task {
            do throws(AttestationServiceError) {
                let object = try await service.attestKey(keyID, clientDataHash: hash)
                work.end(with: .success(object))
            } catch {
                work.end(with: .failure(error))
            }
        }
        return work
    }

    /// Has a request signed. Where the service says `serverUnavailable`, it is asked again for the
    /// same key and the same hash, later and later, as Apple advises; a few times, since a request
    /// waits for it.
    func assertion(
        _ keyID: String,
        _ hash: Data,
        within seconds: Double
    ) async -> Result<Data, AttestationServiceError> {
        let time = clock.now.addingTimeInterval(seconds)
        var tries = 0
        while true {
            let result = await oneAssertion(keyID, hash, until: time)
            tries += 1
            guard case .failure(.serverUnavailable) = result else {
                lull.withLock { $0 = nil }
                return result
            }
            let delay = Self.retryDelay * Double(1 << tries) * (0.5 + random() / 2)
            let next = clock.now.addingTimeInterval(delay)
            guard tries < Self.signingTriesMax, next < time, !isInLull else {
                // Requests that come soon try once, so that they don't queue up for the others.
                let end = clock.now.addingTimeInterval(Self.lullTime)
                lull.withLock { if $0 == nil { $0 = end } }
                return result
            }
            events.send(.signingDelayed(until: next))
            guard (try? await clock.wait(until: next)) != nil else { return result }
        }
    }

    /// Whether the service was unavailable a moment ago, for all tries of a request.
    private var isInLull: Bool {
        let now = clock.now
        return lull.withLock { end in
            // One that ends later than any was made before the clock was set back.
            if let last = end, last <= now || last.timeIntervalSince(now) > Self.lullTime {
                end = nil
            }
            return end != nil
        }
    }

    private func oneAssertion(
        _ keyID: String,
        _ hash: Data,
        until time: Date
    ) async -> Result<Data, AttestationServiceError> {
        let work = Work<Data>()
        Task {
            do throws(AttestationServiceError) {
                let object = try await service.generateAssertion(keyID, clientDataHash: hash)
                work.end(with: .success(object))
            } catch {
                work.end(with: .failure(error))
            }
        }
        return await result(of: work, until: time)
    }

    /// What a call came to, or `serverUnavailable` at a time.
    func result<Value>(
        of work: Work<Value>,
        until time: Date
    ) async -> Result<Value, AttestationServiceError> {
        await work.value(until: time, by: clock) ?? .failure(.serverUnavailable)
    }
}

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
