public import Foundation

/// What happens in a session, for logs and metrics. No event holds a secret or an assertion.
///
/// May grow: a `switch` over it has an `@unknown default`.
#if hasAttribute(nonexhaustive)
    @nonexhaustive(warn)
#endif
public enum PortcullisEvent: Hashable, Sendable {
    /// The service made a key.
    case keyGenerated(keyID: String)
    /// The service was asked to attest a key. Each event is one call.
    case attestationRequested(keyID: String)
    /// The gateway has the key.
    case enrolled(keyID: String)
    /// No key is enrolled before a time.
    case enrolmentHeld(EnrolmentHold)
    /// A key was forgotten, because the gateway or the device refused it.
    case keyForgotten(keyID: String, reason: String)
    /// The service can't sign now. It is asked again at a time, for the same key and hash.
    case signingDelayed(until: Date)
    case sessionOpened
    /// The gateway refused a request.
    case refused(GatewayRefusal)
    /// A request is sent without proof.
    case unproven(SentProof.Absence)
    /// A request whose route asks for a device token is sent without one.
    case withoutDeviceToken(DeviceTokenOutcome)
    /// It was learned from an answer what a route signs.
    case routeLearned(route: String)
    /// Another plan came from the gateway, and counts from now on.
    case planFetched
    /// What came as the plan is none. The one before stays.
    case planIgnored(SigningPlanError)
    /// The gateway gave no plan. It is asked again at a time.
    case planUnavailable(until: Date)
    /// The store could not be read or written.
    case storeFailed
    /// The store did not take a record, again and again, because it held another one each time. The
    /// enrolment is given up until the next request that needs a key. Something else writes into
    /// the store all the time, or ``EnrolmentStore/replace(_:with:)`` always returns `false`.
    case storeContended
}

extension PortcullisEvent: CustomStringConvertible {
    /// A sentence for a log. It leaves key ids out: they are the same in all requests of an
    /// install.
    public var description: String {
        switch self {
        case .keyGenerated: "The service made a key."
        case .attestationRequested: "The service was asked to attest a key."
        case .enrolled: "The gateway has enrolled the key."
        case .enrolmentHeld(let hold):
            "No key is enrolled before \(hold.until): \(hold.cause.words)."
        case .keyForgotten(_, let reason): "A key was forgotten: \(reason)."
        case .signingDelayed(let time): "The service can't sign now. It is asked again at \(time)."
        case .sessionOpened: "A session was opened."
        case .refused(let refusal):
            "The gateway refused a request: \(refusal.reason), next is \(refusal.next.rawValue)."
        case .unproven(let absence): "A request is sent without proof: \(absence.words)."
        case .withoutDeviceToken(let outcome):
            "A request is sent without a device token: \(outcome.words)."
        case .routeLearned(let route): "It was learned what a route signs: \(route)."
        case .planFetched: "Another plan came from the gateway."
        case .planIgnored(let error): "What came as the plan is none: \(error.localizedDescription)"
        case .planUnavailable(let time): "The gateway gave no plan. It is asked again at \(time)."
        case .storeFailed: "The store could not be read or written."
        case .storeContended: "The store held another record each time that one was written."
        }
    }
}

extension EnrolmentHold.Cause {
    fileprivate var words: String {
        switch self {
        case .appleUnavailable: "Apple is not reached or busy"
        case .serviceFailed(let error): "the device's service failed, \(error.rawValue)"
        case .throttled: "the gateway admits no more enrolments now"
        case .gatewayUnavailable: "the gateway was not reached or failed"
        case .keysLost: "keys were lost or refused several times"
        case .dailyCap: "a day allows no more keys"
        case .contextUnfit: "the context has no byte, or more than 256"
        case .refused(let reason): "the gateway does not admit this app or device, \(reason)"
        }
    }
}

extension SentProof.Absence {
    /// The reason, as the end of a sentence.
    var words: String {
        switch self {
        case .notAsked: "its route asks for none"
        case .otherOrigin: "its address is none of the gateway's"
        case .routeUnknown: "it is not known what its route signs"
        case .unsupported: "this device or process can't attest"
        case .serviceFailed(let error): "the device's service failed, \(error.rawValue)"
        case .enrolling: "its key is being enrolled"
        case .enrolmentHeld(let hold):
            "no key is enrolled before \(hold.until), \(hold.cause.words)"
        case .challengeUnavailable: "the gateway gave no challenge in time"
        case .storeUnavailable: "the store can't be read or written"
        case .requestUnfit: "it can't be signed as its route asks"
        case .closed: "its session was closed"
        }
    }
}

extension DeviceTokenOutcome {
    fileprivate var words: String {
        switch self {
        case .notAsked: "its route asks for none"
        case .sent: "one went with it"
        case .failed(let error): "the device's service failed, \(error.rawValue)"
        case .keptBack: "others could read it over plain HTTP"
        }
    }
}

/// Hands events to everybody who listens.
final class EventHub: Sendable {
    private struct State {
        var listeners: [Int: AsyncStream<PortcullisEvent>.Continuation] = [:]
        var nextPlace = 0
        var isEnded = false
    }

    /// The newest events that are kept for one who does not read.
    private static let kept = 256

    private let state = Guarded(State())
    private let log: (@Sendable (PortcullisEvent) -> Void)?

    /// - Parameter log: called with each event, where it happens.
    init(_ log: (@Sendable (PortcullisEvent) -> Void)?) { self.log = log }

    /// A new stream of all events from now on.
    func stream() -> AsyncStream<PortcullisEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: PortcullisEvent.self,
            bufferingPolicy: .bufferingNewest(Self.kept)
        )
        let place: Int? = state.withLock { state in
            guard !state.isEnded else { return nil }
            state.nextPlace += 1
            state.listeners[state.nextPlace] = continuation
            return state.nextPlace
        }
        guard let place else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.listeners.removeValue(forKey: place) }
        }
        return stream
    }

    func send(_ event: PortcullisEvent) {
        log?(event)
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield(event) }
    }

    /// Ends all streams.
    func end() {
        let listeners = state.withLock { state in
            state.isEnded = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }
}
