/// The end of the gateway: lame duck, drain, end. Pure: see `Lifecycle` for the driver. Times are
/// nanoseconds of the monotonic clock.
struct Ending: Sendable {
    enum Action: Equatable, Sendable {
        case none
        /// Report that the gateway is not ready, and call ``lameDuckPassed()`` after this time.
        case serveAsLameDuck(Duration)
        /// Report the end, and drain.
        case announceAndDrain
        case drain
        /// No client is left: end calls, close the store, end.
        case endCalls
    }

    private enum State {
        /// The gateway serves. Leaves to `lameDuck`, `draining`.
        case none
        /// `/readyz` answers 503, so that load balancers send new clients elsewhere; the gateway
        /// still serves. Leaves to `draining`.
        case lameDuck(since: UInt64)
        /// No further clients are accepted.
        ///
        /// - clients: the number of event loops that still have clients.
        case draining(since: UInt64, clients: Int)
    }

    private var state = State.none

    /// Whether the end has begun: the gateway is not ready, and makes no reload.
    var hasBegun: Bool { if case .none = state { false } else { true } }

    /// Whether no further clients are accepted.
    var isDraining: Bool { if case .draining = state { true } else { false } }

    /// Whether clients are left that a drain waits for.
    var hasClients: Bool { if case .draining(_, let clients) = state { clients > 0 } else { true } }

    /// The gateway is asked to end. A second time ends the lame-duck delay.
    mutating func stopped(lameDuck time: Duration, now: UInt64) -> Action {
        switch state {
        case .none where time > .zero:
            state = .lameDuck(since: now)
            return .serveAsLameDuck(time)
        case .none: return .announceAndDrain
        case .lameDuck: return .drain
        case .draining: return .none
        }
    }

    func lameDuckPassed() -> Action { if case .lameDuck = state { .drain } else { .none } }

    /// - loops: the number of event loops whose clients are waited for.
    mutating func drainBegan(loops: Int, now: UInt64) {
        state = .draining(since: now, clients: loops)
    }

    /// An event loop has no client any more.
    mutating func loopEmptied() -> Action {
        guard case .draining(let since, let clients) = state else {
            preconditionFailure("Ending: an event loop was emptied before the drain")
        }
        state = .draining(since: since, clients: clients - 1)
        return clients == 1 ? .endCalls : .none
    }

    /// The rest of both times.
    func left(lameDuck: Duration, drain: Duration, now: UInt64) -> Duration {
        func left(_ time: Duration, _ since: UInt64) -> Duration {
            max(time - .nanoseconds(Int64(clamping: now &- since)), .zero)
        }
        return switch state {
        case .none: lameDuck + drain
        case .lameDuck(let since): left(lameDuck, since) + drain
        case .draining(let since, _): left(drain, since)
        }
    }
}
