import ConfigurationReading
import Dispatch
import KeyStore
import Lanes
import Logging
import Proxy

// The end: what is under way is finished first.
extension GatewayServer {
    /// How far the end has come.
    enum Ending {
        /// The gateway serves. Leaves to `lameDuck`, `draining`.
        case none
        /// `/readyz` answers 503, so that load balancers send their next clients elsewhere; all is
        /// served as before. Began at a tick. Leaves to `draining`.
        case lameDuck(since: UInt64)
        /// No more clients are let in. Began at a tick.
        case draining(since: UInt64)
    }

    /// Whether the end has begun: readiness is denied, and no reload is made.
    var isEnding: Bool { if case .none = ending { false } else { true } }

    /// Whether no more clients are let in.
    var isDraining: Bool { if case .draining = ending { true } else { false } }

    /// Ends: no new connections, requests under way are finished, the store is closed. A second
    /// call ends the lame-duck delay.
    package func stop() {
        control.async { [self] in
            let time = configuration.timeouts.lameDuck
            switch ending {
            case .none where time > .zero:
                ending = .lameDuck(since: MonotonicClock.nanoseconds)
                log.notice("lame duck: ready for nobody, and serving on for \(time)")
                tell(.stopping, status: "Lame duck")
                after(time) { [self] in if case .lameDuck = ending { drain() } }
            case .none:
                tell(.stopping, status: "Draining")
                drain()
            case .lameDuck: drain()
            case .draining: break
            }
        }
    }

    private func after(_ time: Duration, _ body: @escaping @Sendable () -> Void) {
        let milliseconds = DispatchTimeInterval.milliseconds(Int(clamping: time.milliseconds))
        control.asyncAfter(deadline: .now() + milliseconds, execute: body)
    }

    func drain() {
        ending = .draining(since: MonotonicClock.nanoseconds)
        log.notice("draining")
        lanesWithClients = units.count
        // Whoever has asked for an upgrade gets the answer on a connection of the operators' lane.
        if case .handedOver = upgrading {
            lanesWithClients += 1
            after(Self.answerTime) { [self] in laneEmptied() }
        }
        for unit in units { unit.drain { [self] in control.async { self.laneEmptied() } } }
        after(configuration.timeouts.drain) { [self] in
            guard lanesWithClients > 0 else { return }
            log.warning("timeouts.drain is over: open connections are closed now")
            for unit in units { unit.abort() }
        }
    }

    /// What is left of `timeouts.lame_duck` and `timeouts.drain`.
    var drainLeft: Duration {
        let timeouts = configuration.timeouts
        func left(_ time: Duration, _ since: UInt64) -> Duration {
            let passed = MonotonicClock.nanoseconds &- since
            return max(time - .nanoseconds(Int64(clamping: passed)), .zero)
        }
        return switch ending {
        case .none: timeouts.lameDuck + timeouts.drain
        case .lameDuck(let since): left(timeouts.lameDuck, since) + timeouts.drain
        case .draining(let since): left(timeouts.drain, since)
        }
    }

    private func laneEmptied() {
        lanesWithClients -= 1
        guard lanesWithClients == 0 else { return }
        renewer?.end()
        devices.finish(within: min(drainLeft, DeviceDesk.finishTime)) { [self] left in
            control.async { self.endCalls(changesLeft: left) }
        }
    }

    private func endCalls(changesLeft: Int) {
        if changesLeft > 0 {
            log.error(
                "\(changesLeft) changes of devices' bits are lost: Apple has not kept them yet"
            )
        }
        // Before the calls end, so that nothing is lost whatever becomes of them.
        let status = closeStore()
        let once = Once { [self] in end(status) }
        apple.stop { [self] in control.async { once.run() } }
        control.asyncAfter(deadline: .now() + AppleDesk.stopTime) { once.run() }
    }

    private func closeStore() -> Int32 {
        do throws(JournalError) {
            try keys.close()
            return 0
        } catch {
            log.error("the store could not be closed properly: \(error)")
            return 1
        }
    }

    private func end(_ status: Int32) {
        log.notice("ended")
        outputs.drain(accessLog)
        surroundings.supervisor?.drain()
        surroundings.exit(status)
    }
}
