package import ConfigurationReading
import Cryptography
import Dispatch
import EventLoops
import Glibc
import KeyStore
import Logging
import OutboundCalls
package import Parties
import Proxy
import Rules
import Services
import Verification

/// The running gateway: connects and starts the parts of a `GatewayAssembly`. Each part owns its
/// state on the control queue; see `ControlPlane`.
///
/// `@unchecked Sendable`: ``start()`` sets the two variables before other code has the gateway.
package final class GatewayServer: @unchecked Sendable {
    let assembly: GatewayAssembly
    let lifecycle: Lifecycle
    let faults: FaultReports
    let upkeep: StoreUpkeep
    /// Neither drained nor reloaded: they end with the process.
    private(set) var operatorLoops: [LoopUnit] = []
    private var signals: SignalWatch?

    var plane: ControlPlane { assembly.plane }
    var listening: Listening { assembly.listening }
    var parts: Reloads.Parts { assembly.parts }
    var reloads: Reloads { assembly.reloads }
    var judging: JudgingParts { parts.judging }

    /// The addresses of the listeners, with real ports.
    package var addresses: [String] { listening.clients.map(\.text) }

    /// The addresses of the admin listeners, with real ports.
    package var adminAddresses: [String] { listening.operators.map(\.socket.text) }

    /// Takes calls to Apple's services.
    package var appleServices: any AppleCalling { parts.calls.parties.appleServices }

    /// Starts the gateway, which runs until a signal or ``stop()``. `file` is the configuration's,
    /// for reloads and messages. A failed start throws, and then nothing listens.
    @discardableResult
    package static func run(
        _ configuration: GatewayConfiguration,
        file: String,
        surroundings: GatewaySurroundings = GatewaySurroundings()
    ) throws(GatewayError) -> GatewayServer {
        let outputs = LogOutputs()
        do throws(GatewayError) {
            prepareProcess(surroundings)
            let assembly = try GatewayAssembly(
                configuration,
                file: file,
                surroundings: surroundings,
                outputs: outputs
            )
            let server = try GatewayServer(assembly)
            if let predecessor = surroundings.predecessor {
                let transferred = assembly.transferred
                if let handed = predecessor.state?.handed { try transferred.take(handed) }
                try predecessor.takeTurn(answering: transferred.answering())
            }
            server.start()
            return server
        } catch {
            // Messages from before the failure are written before the failure's own.
            outputs.drain(nil)
            throw error
        }
    }

    private init(_ assembly: GatewayAssembly) throws(GatewayError) {
        self.assembly = assembly
        let (plane, parts) = (assembly.plane, assembly.parts)
        lifecycle = Lifecycle(
            plane,
            Lifecycle.Parts(
                reloads: assembly.reloads,
                rollouts: parts.rollouts,
                fleet: parts.fleet,
                calls: parts.calls,
                store: parts.judging.decider.keys,
                outputs: parts.outputs
            )
        )
        faults = FaultReports(plane, parts.outputs)
        upkeep = StoreUpkeep(plane, parts.judging.decider)
        for set in assembly.listening.all { try set.listen() }
    }

    /// Signals that ask for a reload or an upgrade wait from now on until the gateway serves.
    /// Called before the configuration is read.
    package static func deferSignals() { SignalWatch.noteRequests() }

    private static func prepareProcess(_ surroundings: GatewaySurroundings) {
        // A peer or reader that is gone, or a file at its limit, is an error of that write.
        for number in [SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
        if surroundings.watchesSignals { SignalWatch.noteRequests() }
        if surroundings.ownsProcess { Privileges.forbidNew() }
    }

    private func start() {
        if plane.surroundings.watchesSignals { SignalWatch.noteStops() }
        watchFaults()
        plane.queue.sync { connectParts() }
        parts.calls.start()
        startLoops()
        let collector = SnapshotCollector(self)
        judging.probes.ask(collector)
        startOperators(collector)
        plane.perform { [self] in
            parts.directory.scheduleLookUp()
            parts.certificates.start { [parts] in parts.directory.replaceServers(of: $0) }
            parts.reporting.start { [unowned self] in ruleFacts }
            parts.guards.start()
            parts.fleet?.start(judging.decider.keys, at: addresses.first ?? "") { [lifecycle] in
                lifecycle.setDrained($0)
            }
            upkeep.start()
        }
        guard plane.surroundings.watchesSignals else { return plane.perform { self.announce() } }
        // Signals are watched before the gateway reports that it serves: they may follow at once.
        signals = SignalWatch(on: plane.queue) { [self] in
            announce()
        } handle: { [lifecycle, reloads] request in
            switch request {
            case .stop: lifecycle.stop()
            case .reload: if !lifecycle.defers(SIGHUP) { reloads.reload() }
            case .reopenLog: reloads.reopenLog()
            case .upgrade: lifecycle.upgrade { _ in }
            }
        }
    }

    /// Connects the parts: events of one part that another one handles.
    private func connectParts() {
        let (reloads, guards, reporting) = (reloads, parts.guards, parts.reporting)
        let reports = parts.reports
        parts.rollouts.start(
            Rollouts.Consumers(
                loops: plane.loops.count,
                serve: { reloads.serveOrderedRules($0) },
                tookEffect: { made in
                    let change = made.change
                    let kind = change.note.isGuards ? Report.Mark.Kind.fall : .order
                    let text = "\(change.rule ?? "all rules"): \(change.from) → \(change.to)"
                    reporting.add(Report.Mark(kind, at: change.note.at.seconds, text))
                    guards.forget(change.rule, by: made.version)
                },
                lastHour: { rule, done in
                    reports.report(of: ReportScope(rule: rule, windows: [.hour]), done)
                }
            )
        )
        reloads.start { [lifecycle] in lifecycle.reloadChanged(isRunning: $0) }
        lifecycle.start { [self] in makeUpgrade() }
    }

    /// Called on the control queue.
    func makeUpgrade() -> Upgrade {
        let parts = Upgrade.Parts(
            plane: plane,
            transferred: assembly.transferred,
            rollouts: parts.rollouts,
            reloads: reloads,
            sockets: listening.all,
            operatorLoops: operatorLoops
        )
        return Upgrade(parts) { [lifecycle] in lifecycle.successorChanged(isHung: $0) }
    }

    private func watchFaults() {
        let (plane, faults, keys) = (plane, faults, judging.decider.keys)
        let outputs = parts.outputs
        outputs.accessLosses.watch { notice in plane.perform { faults.accessLogChanged(notice) } }
        outputs.refusalLosses.watch { notice in plane.perform { faults.refusalsLeftOut(notice) } }
        outputs.messageLosses.watch { notice in plane.perform { faults.messagesChanged(notice) } }
        keys.committer.watch { error in plane.perform { faults.storeChanged(error) } }
        keys.watchReading { error in plane.perform { faults.storeReadChanged(error) } }
    }

    private func startLoops() {
        let (plane, faults, directory) = (plane, faults, parts.directory)
        for (index, unit) in plane.loops.enumerated() {
            judging.decider.keys.committer.register(unit)
            unit.start(
                listening.clients.map { $0.socket(ofLoop: index) },
                LoopUnit.Reports(
                    shortageChanged: { error in plane.perform { faults.acceptChanged(error) } },
                    certificateRefused: { reason, address, count in
                        plane.perform {
                            faults.certificateRefused(reason, address, count: count)
                        }
                    },
                    leftOut: { [losses = parts.outputs.refusalLosses] in losses.lost($0) },
                    proxiedFailed: { fault in plane.perform { faults.proxiedFailed(fault) } }
                )
            )
        }
        plane.loops.first?.watchOrigins { notice in plane.perform { directory.changed(notice) } }
    }

    private func startOperators(_ collector: SnapshotCollector) {
        let listeners = plane.queue.sync { plane.configuration.admin }
        for (place, (socket, loop)) in listening.operators.enumerated() {
            let proxy = ProxyLoop.operators(
                loop,
                collector,
                calls: operatorCalls(listeners[place], parts.operatorTokens[place]),
                over: judging.decider
            )
            let unit = LoopUnit(loop, proxy)
            operatorLoops.append(unit)
            // Operators are accepted even when clients have used all of their descriptors.
            unit.start([socket.socket(ofLoop: 0)], LoopUnit.Reports(), descriptorsMax: .max)
        }
    }

    private func announce() {
        for set in listening.clients {
            plane.log.notice(
                "listening on \(set.text)\(set.isLent ? ", a socket of the service manager" : "")"
            )
        }
        for (address, listener) in zip(adminAddresses, plane.configuration.admin) {
            plane.log.notice("admin on \(address): \(listener.servesText)")
        }
        let (loops, rules) = (plane.loops.count, plane.configuration.rules.rules.count)
        plane.log.notice("\(loops) event loops, \(rules) rules, \(judging.decider.keys.count) keys")
        if let text = plane.configuration.spillText { plane.log.notice("\(text)") }
        lifecycle.began()
        parts.rollouts.obeyFiles(after: nil)
    }

    /// Ends: no new connections; requests under way are finished; the store is closed. A second
    /// call ends the lame-duck delay.
    package func stop() { lifecycle.stop() }
}
