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
