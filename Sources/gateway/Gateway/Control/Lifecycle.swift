import ConfigurationReading
import Dispatch
import EventLoops
import Glibc
import KeyStore
import Logging
import Proxy
import Rules
import Services

/// The life of the process: the messages to the service manager, the upgrade, and the end, which
/// first finishes requests under way.
final class Lifecycle: Sendable {
    /// The least time that the process lives after its hand-over.
    private static let answerTime = DispatchTimeInterval.milliseconds(500)
    /// The time in which a process that has taken over begins to watch its signals.
    private static let watchTime = DispatchTimeInterval.milliseconds(250)

    private struct State {
        /// Signals that came while the decisions were handed over.
        var late: Set<Int32> = []
        var makeUpgrade: (@Sendable () -> Upgrade)?
    }

    /// The parts of the gateway whose end it conducts.
    struct Parts {
        let reloads: Reloads
        let rollouts: Rollouts
        let fleet: Fleet?
        let calls: OutsideCalls
        let store: KeyTable
        let outputs: LogOutputs
    }

    private let plane: ControlPlane
    private let parts: Parts
    private let state: QueueBound<State>

    init(_ plane: ControlPlane, _ parts: Parts) {
        (self.plane, self.parts) = (plane, parts)
        state = QueueBound(State(), on: plane.queue)
    }

    /// `makeUpgrade` is called when an upgrade is requested.
    func start(makeUpgrade: @escaping @Sendable () -> Upgrade) {
        state.value.makeUpgrade = makeUpgrade
    }

    // MARK: The service manager

    /// The gateway serves: reports that, and from now on that it is alive.
    func began() {
        tell(.ready, status: servingStatus)
        startWatchdog()
    }

    func reloadChanged(isRunning: Bool) {
        if isRunning {
            tell(.reloading(at: MonotonicClock.nanoseconds))
        } else {
            tell(.ready, status: servingStatus)
        }
    }

    /// Reports the state of the gateway. Does nothing without a service manager.
    private func tell(_ notice: Supervisor.Notice, status: String? = nil) {
        // Another process is the service now, and the manager would ignore this one.
        if case .handedOver = plane.upgrading { return }
        plane.surroundings.supervisor?.tell(notice, status: status)
    }

    /// The status for the manager while the gateway serves.
    private var servingStatus: String {
        let facts = parts.reloads.facts
        return "Serving, generation \(facts.generation): "
            + "\(plane.configuration.rules.rules.count) rules, \(parts.store.count) keys"
            + (facts.lastReloadError.map { "; last reload refused: \($0)" } ?? "")
    }

    /// Begins to report that the gateway is alive, three times in the manager's interval.
    ///
    /// Before each report all event loops and the control queue must have answered. A blocked event
    /// loop keeps the round open. Then no further round begins, and the manager restarts the
    /// gateway.
    private func startWatchdog() {
        guard let time = plane.surroundings.supervisor?.watchdogMicroseconds else { return }
        feedWatchdog(every: .microseconds(Int(clamping: max(time / 3, 1))))
    }

    private func feedWatchdog(every interval: DispatchTimeInterval) {
        let next = DispatchTime.now() + interval
        plane.gather { unit in
            { answered in unit.loop.perform { answered(()) } }
        } _: { [self] (_: [Void]) in
            tell(.alive)
            plane.queue.asyncAfter(deadline: next) { self.feedWatchdog(every: interval) }
        }
    }

    // MARK: The end

    /// Ends: no new connections; requests under way are finished; the store is closed. A second
    /// call ends the lame-duck delay.
    func stop() {
        plane.perform { [self] in
            guard !defers(SIGTERM) else { return }
            let time = Duration.milliseconds(plane.configuration.timeouts.lameDuck)
            let now = MonotonicClock.nanoseconds
            perform(plane.ending.stopped(lameDuck: time, now: now))
        }
    }

    private func perform(_ action: Ending.Action) {
        switch action {
        case .none: break
        case .serveAsLameDuck(let time):
            plane.log.notice("lame duck: not ready, still serving for \(time)")
            tell(.stopping, status: "Lame duck")
            plane.perform(after: DispatchTimeInterval(time)) { [self] in
                perform(plane.ending.lameDuckPassed())
            }
        case .announceAndDrain:
            tell(.stopping, status: "Draining")
            drain()
        case .drain: drain()
        case .endCalls: endCalls()
        }
    }

    /// Whether a signal has to wait: while the decisions are handed over, it is not known which
    /// process serves afterwards. That one obeys it then.
    func defers(_ signal: Int32) -> Bool {
        guard case .running = plane.upgrading, parts.rollouts.isClosed else { return false }
        state.value.late.insert(signal)
        plane.log.notice(
            "upgrade: the decisions are being handed over; who serves afterwards obeys the signal"
        )
        return true
    }

    /// Operators drain the gateway of a fleet, or no longer: it is not ready, so that balancers
    /// send clients elsewhere, and connections end after their request. It goes on accepting: a
    /// client that still comes is served.
    func setDrained(_ why: String?) {
        guard !plane.isEnding, plane.isDrained != (why != nil) else { return }
        plane.isDrained = why != nil
        if let why {
            plane.log.notice("drained: not ready, still serving (\(why))")
        } else {
            plane.log.notice("the drain is over: ready again")
        }
        for loop in plane.loops { loop.setDrained(why != nil) }
    }

    private func drain() {
        var loops = plane.loops.count
        // The caller of an upgrade gets the answer on a connection of the operators' event loop.
        if case .handedOver = plane.upgrading {
            loops += 1
            plane.perform(after: Self.answerTime) { [self] in loopEmptied() }
        }
        plane.ending.drainBegan(loops: loops, now: MonotonicClock.nanoseconds)
        plane.log.notice("draining")
        for loop in plane.loops { loop.drain { [self] in plane.perform { self.loopEmptied() } } }
        let time = DispatchTimeInterval(.milliseconds(plane.configuration.timeouts.drain))
        plane.perform(after: time) { [self] in
            guard plane.ending.hasClients else { return }
            plane.log.warning("timeouts.drain is over: open connections are closed now")
            for loop in plane.loops { loop.abort() }
        }
    }

    private func loopEmptied() { perform(plane.ending.loopEmptied()) }

    /// The rest of `timeouts.lame_duck` and `timeouts.drain`.
    var drainLeft: Duration {
        let timeouts = plane.configuration.timeouts
        return plane.ending.left(
            lameDuck: .milliseconds(timeouts.lameDuck),
            drain: .milliseconds(timeouts.drain),
            now: MonotonicClock.nanoseconds
        )
    }

    private func endCalls() {
        parts.calls.end()
        parts.calls.finish(within: drainLeft) { [self] left in
            plane.perform { self.callsFinished(changesLeft: left) }
        }
    }

    private func callsFinished(changesLeft: Int) {
        if changesLeft > 0 {
            plane.log.error(
                "\(changesLeft) changes of devices' bits are lost: Apple has not kept them yet"
            )
        }
        // Before the calls end, so that nothing is lost whatever their result.
        let status = closeStore()
        let once = FirstAnswer<Void> { [self] _ in end(status) }
        parts.calls.stop { [plane] in plane.perform { once.give(()) } }
        plane.perform(after: HTTPSCalls.stopTime) { once.give(()) }
    }

    private func closeStore() -> Int32 {
        parts.fleet?.close()
        do throws(JournalError) {
            try parts.store.close()
            return 0
        } catch {
            plane.log.error("the store could not be closed properly: \(error)")
            return 1
        }
    }

    private func end(_ status: Int32) {
        plane.log.notice("ended")
        parts.outputs.drain(parts.reloads.accessLog)
        plane.surroundings.supervisor?.drain()
        plane.surroundings.exit(status)
    }

    // MARK: The upgrade

    private func obstacle() -> String? {
        if plane.isEnding { return "the gateway ends" }
        switch plane.upgrading {
        case .none: break
        case .running: return "an upgrade is being made already"
        case .handedOver: return "this process has handed over already"
        }
        guard !parts.reloads.isRunning else { return "a reload is being made; try again" }
        guard plane.surroundings.ownsProcess else {
            return "the gateway is a part of another program"
        }
        // A container ends with its first process, whatever other processes there are.
        if getpid() == 1 { return "this is a container's first process; replace the container" }
        return nil
    }

    private func refuse(_ why: String, _ done: @Sendable (UpgradeReport) -> Void) {
        plane.log.error("upgrade: refused, and nothing has changed: \(why)")
        done(.refused(why))
    }

    /// The deciding process does not answer, or answers again.
    func successorChanged(isHung: Bool) {
        plane.perform { [self] in
            if isHung {
                plane.log.error(
                    """
                    upgrade: the process that serves now does not answer this one, which drains: \
                    what is verified here is answered 503 until it does; next: look whether that \
                    process hangs, and restart the service if it does
                    """
                )
            } else {
                plane.log.notice("upgrade: the process that serves now answers again")
            }
        }
    }

    private func upgradeEnded(
        _ result: Result<Upgrade.Done, UpgradeRefusal>,
        _ done: @Sendable (UpgradeReport) -> Void
    ) {
        let late = state.value.late
        state.value.late = []
        switch result {
        case .failure(let refusal):
            plane.upgrading = .none
            if !plane.isEnding { tell(.ready, status: servingStatus) }
            refuse(refusal.text, done)
            if late.contains(SIGHUP) { parts.reloads.reload() }
            if late.contains(SIGTERM) { stop() }
        case .success(let success):
            plane.upgrading = .handedOver
            let microseconds = success.pause / 1_000
            plane.log.notice(
                """
                upgrade: process \(success.process) serves from now on, portcullis \
                \(success.version), \(success.program); accepting paused for \
                \(microseconds / 1_000).\(String(microseconds % 1_000 + 1_000).dropFirst()) ms
                """
            )
            if let doubt = success.doubt { plane.log.warning("upgrade: \(doubt)") }
            let report = UpgradeReport.Successor(
                process: success.process,
                program: success.program,
                version: success.version,
                doubt: success.doubt,
                pauseMicroseconds: microseconds
            )
            done(.done(report))
            parts.calls.end()
            parts.store.leaveStore()
            parts.fleet?.leave()
            drain()
            pass(late, to: success.process)
        }
    }

    /// Has the process that serves now obey what this one was told meanwhile.
    private func pass(_ signals: Set<Int32>, to process: Int32) {
        guard !signals.isEmpty else { return }
        plane.perform(after: Self.watchTime) {
            for signal in signals.sorted() { kill(process, signal) }
        }
    }
}

extension Lifecycle: Handing {
    package func upgrade(_ done: @escaping @Sendable (UpgradeReport) -> Void) {
        plane.perform { [self] in
            if let why = obstacle() { return refuse(why, done) }
            guard let upgrade = state.value.makeUpgrade?() else {
                return refuse("the gateway starts", done)
            }
            plane.upgrading = .running
            plane.log.notice("upgrade: starting the program anew")
            DispatchQueue(label: "portcullis.upgrade").async { [self] in
                let result = Result { () throws(UpgradeRefusal) in try upgrade.run() }
                plane.perform { self.upgradeEnded(result, done) }
            }
        }
    }
}
