import Foundation
import RequestBinding

/// Keeps the one session with the gateway: opens it when it is asked for, once for all who ask, and
/// the next one before it ends.
actor SessionKeeper {
    /// A request's place in a session.
    struct Ticket: Sendable {
        let session: String
        let secret: Data
        let keyID: String
        /// What the request says of the key, so that a load balancer finds the gateway that has
        /// opened the session; `nil` where that gateway does not take it.
        let namedKey: String?
        let sequence: SequenceNumber
    }

    /// What came of opening one.
    struct Opened: Sendable {
        let opening: GatewayCalls.Opening
        let keyID: String
    }

    private struct Open {
        let opened: Opened
        let until: Date
        let renewal: Date
        var next: SequenceNumber?
        /// Numbers whose answers have not come.
        var underWay: Set<UInt64> = []
    }

    typealias Opener = @Sendable () async -> Result<Opened, EndpointFailure>

    private let configuration: PortcullisConfiguration
    private let events: EventHub
    private var open: Open?
    private var opening: SharedWork<Bool>?
    /// The key that was refused last. A session that it still opens is not used.
    private var refusedKey: String?
    /// Until when no session is asked for.
    private var holdUntil = Date.distantPast

    /// After a failure that may pass, in seconds.
    static let shortHold: Double = 30
    /// After a gateway that has no sessions, in seconds.
    static let longHold: Double = 3600

    init(_ configuration: PortcullisConfiguration, events: EventHub) {
        (self.configuration, self.events) = (configuration, events)
    }

    private var now: Date { configuration.clock.now }

    /// The next place in the session; `nil` when there is no session in time, or when the gateway
    /// would take one more request under way for a replay.
    func ticket(within seconds: Double, opener: @escaping Opener) async -> Ticket? {
        if let open, open.until > now {
            if open.renewal <= now { _ = begin(opener) }
            return place()
        }
        open = nil
        guard let work = begin(opener) else { return nil }
        let time = now.addingTimeInterval(seconds)
        guard await work.value(until: time, by: configuration.clock) == true else { return nil }
        return place()
    }

    /// The answer to a request of the session has come.
    func ended(_ ticket: Ticket) {
        guard open?.opened.opening.session == ticket.session else { return }
        open?.underWay.remove(ticket.sequence.rawValue)
    }

    /// Forgets a session that was refused, unless another one has taken its place.
    func forget(_ session: String) {
        if open?.opened.opening.session == session { open = nil }
    }

    /// Forgets a session that another key has opened than the one that counts.
    func keep(to keyID: String) {
        if let open, open.opened.keyID != keyID { self.open = nil }
    }

    /// Forgets the session of a key that was refused.
    func forget(keyID: String) {
        refusedKey = keyID
        if open?.opened.keyID == keyID { open = nil }
    }

    /// Forgets the session. One that is being opened is not used.
    func reset() {
        open = nil
        holdUntil = .distantPast
        opening?.end(with: false)
        opening = nil
    }

    private func place() -> Ticket? {
        guard let open, let sequence = open.next else { return nil }
        let lowest = open.underWay.min() ?? sequence.rawValue
        guard sequence.rawValue - lowest < UInt64(max(1, open.opened.opening.window)) else {
            return nil
        }
        self.open?.next = sequence.next
        self.open?.underWay.insert(sequence.rawValue)
        return Ticket(
            session: open.opened.opening.session,
            secret: open.opened.opening.secret,
            keyID: open.opened.keyID,
            namedKey: open.opened.opening.accepts_key_id == true ? open.opened.keyID : nil,
            sequence: sequence
        )
    }

    private func begin(_ opener: @escaping Opener) -> SharedWork<Bool>? {
        if let opening { return opening }
        // A hold that ends later than any was made before the clock was set back.
        guard now >= holdUntil || holdUntil.timeIntervalSince(now) > Self.longHold else {
            return nil
        }
        let work = SharedWork<Bool>()
        opening = work
        Task {
            let result = await opener()
            // A reset has ended it.
            guard opening === work else { return }
            opening = nil
            work.end(with: opened(result))
        }
        return work
    }

    private func opened(_ result: Result<Opened, EndpointFailure>) -> Bool {
        switch result {
        case .success(let opened):
            let life = opened.opening.expires_in
            guard life.isFinite, life > 0, opened.keyID != refusedKey else { return false }
            open = Open(
                opened: opened,
                // Shorter than it lives, so that no request ends on its way.
                until: now.addingTimeInterval(life - min(life / 10, 10)),
                renewal: now.addingTimeInterval(life * 0.8),
                next: .first
            )
            events.send(.sessionOpened)
            return true
        case .failure(.refused(_, .retryLater, let seconds)), .failure(.unreachable(let seconds)):
            holdUntil = now.addingTimeInterval(min(seconds ?? Self.shortHold, Self.longHold))
        case .failure(.refused(_, .signAgain, _)), .failure(.refused(_, .enrol, _)):
            holdUntil = now.addingTimeInterval(Self.shortHold)
        case .failure(.refused): holdUntil = now.addingTimeInterval(Self.longHold)
        }
        return false
    }
}
