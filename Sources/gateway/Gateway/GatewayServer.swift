import AppAttest
package import ConfigurationReading
import Cryptography
import Dispatch
package import EventLoops
import Glibc
package import KeyStore
import Logging
import OutboundCalls
package import Parties
import Proxy
import Rules
import SQLiteKeyStore
import Services
import Telemetry
import Tokens
import Verification

/// The running gateway: creates its parts, connects and starts them. Each part owns its state on
/// the control queue; see `ControlPlane`.
///
/// `@unchecked Sendable`: ``start()`` sets the two variables before other code has the gateway.
package final class GatewayServer: @unchecked Sendable {
    /// Dependencies that a caller may replace: for tests and the demonstration.
    package struct Surroundings: Sendable {
        /// Ends the process; called when the last client is gone and the store is closed.
        package var exit: @Sendable (Int32) -> Void = { Glibc.exit($0) }
        /// Whether signals are handled.
        package var watchesSignals = true
        /// The wall clock of the event loops: milliseconds since 1970.
        package var wallClock: @Sendable () -> Int64 = EventLoop.systemWallClock
        /// Opens the keys of a database file.
        package var openJournal: @Sendable (String) -> Result<any KeyJournal, StoreProblem> = {
            path in
            Result { () throws(StoreProblem) in try SQLiteKeyJournal(path: path) }
        }
        package var lookUp: @Sendable (String, UInt16) -> [SocketAddress] = {
            SocketAddress.resolve($0, port: $1)
        }
        /// The intervals of repeated look-ups of names.
        package var lookUpPace = LookUpPace()
        /// The interval of checks of certificate files.
        package var certificatePace = Duration.seconds(5)
        /// The supervisor that started the process and gets its state; `nil` for none.
        package var supervisor: Supervisor?
        /// Sockets that the process was started with.
        package var inherited = InheritedSockets()
        /// The process from which this one takes over; `nil` for a first start.
        package var predecessor: Predecessor?
        /// Whether the process belongs to the gateway, so that it may drop its privileges.
        package var ownsProcess = true

        package init() {}
    }

    /// The version that the admin pages and `--version` show.
    package static let version = "0.1.0"

    /// The listening sockets.
    struct Listening {
        let clients: [ListenerSet]
        /// The operators' sockets, in the order of the configuration, each with its event loop.
        let operators: [(socket: ListenerSet, loop: EventLoop)]

        var all: [ListenerSet] { clients + operators.map(\.socket) }
    }

    let plane: ControlPlane
    let listening: Listening
    let judging: JudgingParts
    let parts: Reloads.Parts
    let reloads: Reloads
    let lifecycle: Lifecycle
    /// The keys of clients' TLS tickets.
    let tickets: TicketKeys
    let faults: FaultReports
    let upkeep: StoreUpkeep
    let outputs: LogOutputs
    /// Whether this start has created the database, since there was none.
    let madeStore: Bool
    /// The ledger of held content, for all event loops.
    let held = HeldLedger()
    /// The tokens of the admin listeners, in their order.
    let operatorTokens: [OperatorTokenBox]
    /// Neither drained nor reloaded: they end with the process.
    private(set) var operatorLoops: [LoopUnit] = []
    private var signals: SignalWatch?

    /// The addresses of the listeners, with real ports.
    package var addresses: [String] { listening.clients.map(\.text) }

    /// The addresses of the admin listeners, with real ports.
    package var adminAddresses: [String] { listening.operators.map(\.socket.text) }

    /// Takes calls to Apple's services.
    package var appleServices: any AppleCalling { parts.apple.calls }

    /// Starts the gateway, which runs until a signal or ``stop()``. `file` is the configuration's,
    /// for reloads and messages. A failed start throws, and then nothing listens.
    @discardableResult
    package static func run(
        _ configuration: GatewayConfiguration,
        file: String,
        surroundings: Surroundings = Surroundings()
    ) throws(GatewayError) -> GatewayServer {
        let outputs = LogOutputs()
        do throws(GatewayError) {
            let server = try GatewayServer(configuration, file: file, surroundings, outputs)
            try server.takeRest(of: surroundings.predecessor)
            try surroundings.predecessor?.takeTurn(
                server.judging.keys,
                server.judging.issuer,
                also: [server.judging.sessions.answer, server.parts.apple.devices.answer]
            )
            server.start()
            return server
        } catch {
            // Messages from before the failure are written before the failure's own.
            outputs.drain(nil)
            throw error
        }
    }

    private init(
        _ configuration: GatewayConfiguration,
        file: String,
        _ surroundings: Surroundings,
        _ outputs: LogOutputs
    ) throws(GatewayError) {
        Self.prepareProcess(surroundings)
        self.outputs = outputs
        let log = outputs.logger(configuration.log.level)
        let startedAt = Int64(time(nil))
        let count = Self.count(configuration.loops)
        try DescriptorLimit.raise(loops: count, configuration)
        let watch = CertificateWatch(LoadedCertificates.stamps(of: configuration), startedAt)
        tickets = TicketKeys(now: ControlPlane.monotonicSeconds)
        let preparation = try Preparation.complete(
            configuration,
            tls: TLSSurroundings(tickets, surroundings),
            file: file
        )
        let resolver = Resolver(lookUp: surroundings.lookUp)
        listening = try Listening(configuration, preparation, loops: count, surroundings, log)
        if surroundings.ownsProcess {
            try Self.giveUpPrivileges(configuration.process, listening.all, file, log)
        }
        let servers = ServerRegistry(configuration, resolver)
        let keys: KeyTable
        (keys, madeStore) = try StoreOpening.table(configuration, surroundings, log)
        let registry = OriginRegistry()
        let start = try Rollouts.Start(configuration, preparation, surroundings, registry, log)
        let configuration = configuration.ordered(by: start.inForce)
        judging = try JudgingParts(
            keys: keys,
            issuer: StoreOpening.issuer(configuration, keys, surroundings.predecessor),
            sessions: Self.sessions(configuration.sessions, surroundings.predecessor)
        )
        let (calls, parties) = Self.parties(configuration, keys, surroundings, log)
        ControlPlane.warn(preparation.warnings + servers.problems(configuration), log)
        let secure = preparation.certificates.origins
        let settings = ProxySettings(configuration, servers, parties, secure, registry)
        let accessLog = try outputs.accessLog(configuration.log.access)
        let admission = EnrolmentAdmission(configuration.enrolment)
        let loops = try Self.loops(
            count,
            configuration,
            settings,
            judging,
            admission,
            held,
            accessLog,
            surroundings
        )
        plane = ControlPlane(configuration, file, surroundings, loops, startedAt, log)
        parts = Reloads.Parts(
            plane,
            certificates: Certificates(plane, preparation.certificates, watch, tickets),
            OriginDirectory.Found(servers: servers, origins: settings.origins, registry: registry),
            resolver,
            orders: Rollouts(plane, start),
            AppleOperations(plane, calls, parties.devices, keys),
            GoogleOperations(plane, configuration, judging.statusLists, parties.https),
            parties,
            admission
        )
        operatorTokens = configuration.admin.map { OperatorTokenBox($0.token) }
        reloads = Reloads(plane, judging, parts, admission, outputs, accessLog, operatorTokens)
        lifecycle = Lifecycle(plane, reloads, parts, keys, outputs)
        faults = FaultReports(plane, outputs)
        upkeep = StoreUpkeep(plane, keys, judging.issuer)
        for set in listening.all { try set.listen() }
    }

    private static func parties(
        _ configuration: GatewayConfiguration,
        _ keys: KeyTable,
        _ surroundings: Surroundings,
        _ log: Logger
    ) -> (calls: AppleClient, RequestParties) {
        let (https, clock) = (HTTPSCalls(), surroundings.wallClock)
        let calls = AppleClient("apple", configuration.apple, https, wallClock: clock)
        let parties = RequestParties(
            devices: DeviceCheckClient(calls, configuration.apple, log, clock),
            proofs: ProofChecks(configuration, keys, https, log, clock),
            https: https
        )
        return (calls, parties)
    }

    /// Signals that ask for a reload or an upgrade wait from now on until the gateway serves.
    /// Called before the configuration is read.
    package static func deferSignals() { SignalWatch.noteRequests() }

    private static func prepareProcess(_ surroundings: Surroundings) {
        // A peer or reader that is gone, or a file at its limit, is an error of that write.
        for number in [SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
        if surroundings.watchesSignals { SignalWatch.noteRequests() }
        if surroundings.ownsProcess { forbidNewPrivileges() }
    }

    private static func loops(
        _ count: Int,
        _ configuration: GatewayConfiguration,
        _ settings: ProxySettings,
        _ judging: JudgingParts,
        _ admission: EnrolmentAdmission,
        _ held: HeldLedger,
        _ accessLog: LogWriter?,
        _ surroundings: Surroundings
    ) throws(GatewayError) -> [LoopUnit] {
        let services = judging.services(configuration, admission)
        let addresses = AddressTable(
            capacity: configuration.limits.addressesMax,
            key: (RandomBytes.word(), RandomBytes.word())
        )
        var loops: [LoopUnit] = []
        for number in 0..<count {
            let loop = try loop(number, surroundings.wallClock)
            let proxy = ProxyLoop(
                loop: loop,
                settings: settings,
                judge: judging.judge(configuration),
                services: services,
                issuer: judging.issuer,
                keys: judging.keys,
                addresses: addresses,
                held: held,
                writeLog: { accessLog?.write($0, dropped: $1) }
            )
            loops.append(LoopUnit(loop, proxy))
        }
        return loops
    }

    fileprivate static func loop(
        _ number: Int,
        _ clock: @escaping @Sendable () -> Int64
    ) throws(GatewayError) -> EventLoop {
        do throws(SocketError) {
            return try EventLoop(number: number, wallClock: clock)
        } catch {
            throw GatewayError(
                "event loop \(number): \(error)",
                hint: "Raise the limit of descriptors."
            )
        }
    }

    static func count(_ loops: EventLoopCount) -> Int {
        switch loops {
        case .perCore: max(Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), 1)
        case .fixed(let count): count
        }
    }

    private func start() {
        if plane.surroundings.watchesSignals { SignalWatch.noteStops() }
        watchFaults()
        plane.queue.sync { connectParts() }
        parts.google.prepare()
        startLoops()
        let collector = SnapshotCollector(self)
        judging.probes.ask(collector)
        startOperators(collector)
        plane.perform { [self] in
            parts.directory.scheduleLookUp()
            parts.certificates.start { [parts] in parts.directory.replaceServers(of: $0) }
            parts.reporting.start { [unowned self] in ruleFacts }
            parts.guards.start()
            parts.fleet?.start(judging.keys, at: addresses.first ?? "") { [lifecycle] in
                lifecycle.setDrained($0)
            }
            upkeep.start()
        }
        parts.apple.start()
        parts.google.start()
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
        lifecycle.start { [self] in Upgrade(server: self) }
    }

    private func watchFaults() {
        let (plane, faults, keys) = (plane, faults, judging.keys)
        outputs.accessLosses.watch { notice in plane.perform { faults.accessLogChanged(notice) } }
        outputs.refusalLosses.watch { notice in plane.perform { faults.refusalsLeftOut(notice) } }
        outputs.messageLosses.watch { notice in plane.perform { faults.messagesChanged(notice) } }
        keys.committer.watch { error in plane.perform { faults.storeChanged(error) } }
        keys.watchReading { error in plane.perform { faults.storeReadChanged(error) } }
    }

    private func startLoops() {
        let (plane, faults, directory) = (plane, faults, parts.directory)
        for (index, unit) in plane.loops.enumerated() {
            judging.keys.committer.register(unit)
            unit.start(listening.clients.map { $0.socket(ofLoop: index) }) { error in
                plane.perform { faults.acceptChanged(error) }
            } certificateRefused: { reason, address, count in
                plane.perform { faults.certificateRefused(reason, address, count) }
            } leftOut: { [outputs] in
                outputs.refusalLosses.lost($0)
            } proxiedFailed: { fault in
                plane.perform { faults.proxiedFailed(fault) }
            }
        }
        plane.loops.first?.watchOrigins { notice in plane.perform { directory.changed(notice) } }
    }

    private func startOperators(_ collector: SnapshotCollector) {
        let listeners = plane.queue.sync { plane.configuration.admin }
        for (place, (socket, loop)) in listening.operators.enumerated() {
            let proxy = ProxyLoop.operators(
                loop,
                collector,
                keys: judging.keys,
                issuer: judging.issuer,
                calls: operatorCalls(listeners[place], operatorTokens[place])
            )
            let unit = LoopUnit(loop, proxy)
            operatorLoops.append(unit)
            // Operators are accepted even when clients have used all of their descriptors.
            unit.start([socket.socket(ofLoop: 0)], descriptorsMax: .max) { _ in }
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
        plane.log.notice("\(loops) event loops, \(rules) rules, \(judging.keys.count) keys")
        if let text = plane.configuration.spillText { plane.log.notice("\(text)") }
        lifecycle.began()
    }

    /// Ends: no new connections; requests under way are finished; the store is closed. A second
    /// call ends the lame-duck delay.
    package func stop() { lifecycle.stop() }
}

extension Reloads.Parts {
    init(
        _ plane: ControlPlane,
        certificates: Certificates,
        _ found: OriginDirectory.Found,
        _ resolver: Resolver,
        orders rollouts: Rollouts,
        _ apple: AppleOperations,
        _ google: GoogleOperations,
        _ parties: RequestParties,
        _ admission: EnrolmentAdmission
    ) {
        self.certificates = certificates
        directory = OriginDirectory(plane, found, resolver, certificates, parties)
        self.rollouts = rollouts
        let guards = Guards(plane, rollouts)
        self.guards = guards
        let reporting = Reporting(plane)
        self.reporting = reporting
        fleet = rollouts.fleet.map { Fleet(plane, rollouts, guards, reporting, admission, $0) }
        self.apple = apple
        self.google = google
        self.parties = parties
    }
}

extension GatewayServer.Listening {
    /// Binds all addresses, and takes over the sockets that the process was started with.
    init(
        _ configuration: GatewayConfiguration,
        _ preparation: Preparation,
        loops count: Int,
        _ surroundings: GatewayServer.Surroundings,
        _ log: Logger
    ) throws(GatewayError) {
        var inherited = surroundings.inherited
        let certificates = preparation.certificates.listeners
        clients = try ListenerSet.clients(configuration, certificates, loops: count, &inherited)
        var operators: [(socket: ListenerSet, loop: EventLoop)] = []
        for socket in try ListenerSet.operators(configuration, &inherited) {
            let number = count + operators.count
            operators.append((socket, try GatewayServer.loop(number, surroundings.wallClock)))
        }
        self.operators = operators
        for what in inherited.discardRest() {
            log.warning(
                """
                a socket that the process was started with is not used: \(what); next: give both \
                the same address, or take it out of the socket unit
                """
            )
        }
    }
}
