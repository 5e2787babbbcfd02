import AppAttest
import Challenges
package import ConfigurationReading
import Cryptography
import Dispatch
import Glibc
package import KeyCatalog
package import KeyStore
package import Lanes
import Logging
import Origins
import Proxy
import Rules
import SQLiteKeyStore
import Services
import Sessions
import TLSSession
import Verification

/// The running gateway.
///
/// `@unchecked Sendable`: the variables below are touched on `control` alone, once the gateway
/// runs.
package final class GatewayServer: @unchecked Sendable {
    /// What a caller may replace: for tests and the demonstration.
    package struct Surroundings: Sendable {
        /// Ends the process; called when the last client is gone and the store is closed.
        package var exit: @Sendable (Int32) -> Void = { Glibc.exit($0) }
        /// Whether signals are heeded.
        package var watchesSignals = true
        /// The wall clock of the lanes: milliseconds since 1970.
        package var wallClock: @Sendable () -> Int64 = Lane.systemWallClock
        /// Opens the keys of a database file.
        package var openJournal: @Sendable (String) -> Result<any KeyJournal, StoreProblem> = {
            path in
            Result { () throws(StoreProblem) in try SQLiteKeyJournal(path: path) }
        }
        /// Looks names up.
        package var lookUp: @Sendable (String, UInt16) -> [SocketAddress] = {
            SocketAddress.resolve($0, port: $1)
        }
        /// When names are looked up again.
        package var lookUpPace = LookUpPace()
        /// How often files of certificates are looked at.
        package var certificatePace = Duration.seconds(5)
        /// Who started the process and wants to know how it stands; `nil` for nobody.
        package var supervisor: Supervisor?
        /// Sockets that the process was started with.
        package var inherited = InheritedSockets()
        /// The process that this one takes over from; `nil` for a start of its own.
        package var predecessor: Predecessor?
        /// Whether the process is the gateway's own, so that it may give up its privileges.
        package var ownsProcess = true

        package init() {}
    }

    /// The version that the admin pages and `--version` show.
    package static let version = "0.1.0"

    var log: Logger
    let file: String
    let control = DispatchQueue(label: "portcullis.control")
    /// Where reloads are read and their names looked up, which may take seconds.
    let loading = DispatchQueue(label: "portcullis.loading")
    /// Where names are looked up again. A reload does not wait for it.
    let naming = DispatchQueue(label: "portcullis.naming")
    let resolver: Resolver
    let outputs: LogOutputs
    let startedAt = Int64(time(nil))
    let startedAtTick = MonotonicClock.nanoseconds
    let keys: KeyTable
    /// Whether this start has made the database, since there was none.
    let madeStore: Bool
    let issuer: ChallengeIssuer
    let sessions: SessionTable
    /// Where calls to Apple's services are handed in.
    let apple: AppleDesk
    /// Asks Apple about devices.
    let devices: DeviceDesk
    /// Deletes keys that were not used for long.
    let expiry = KeyExpiry()
    /// How the origins' servers stand.
    let book = OriginBook()
    /// Content that is held, on all lanes.
    let held = HeldLedger()
    let units: [LaneUnit]
    /// What is listened on, with real ports.
    package let addresses: [String]
    /// The same of the admin listener; `nil` when there is none.
    package let adminAddress: String?
    let surroundings: Surroundings
    let sockets: [ListenerSet]
    /// What operators connect to, and its lane; `nil` when there is none.
    let admin: (socket: ListenerSet, lane: Lane)?
    /// Neither drained nor reloaded: it ends with the process. Set by ``start()``.
    private(set) var adminUnit: LaneUnit?
    private var signals: SignalWatch?
    /// What operators show where the address does not say who may call.
    let operatorTokens = OperatorTokenBox()
    /// The keys of clients' TLS tickets.
    let tickets = TicketKeys(now: GatewayServer.monotonicSeconds)

    // Touched on `control`.
    /// Renews receipts; `nil` where the store keeps none.
    var renewer: ReceiptRenewer?
    var configuration: GatewayConfiguration
    /// Who may enrol now. A reload that leaves its settings alone keeps what was used of the rate.
    var admission: EnrolmentAdmission
    /// Where the origins' servers are.
    var servers: ServerBook
    /// The origins as they are served.
    var origins: [OriginSettings]
    var lookUpPace: LookUpPace
    let probes = ProbeDesk()
    /// What operators have ordered about rollouts.
    var rollouts: Rollouts
    /// What is counted for reports.
    var reporting = Reporting(startedAtTick: MonotonicClock.nanoseconds)
    /// Rules that fall back by themselves.
    var guards = Guards()
    /// Counts the look-ups that were scheduled; an older one is not made any more.
    var lookUpNumber = 0
    var generation = 1
    var accessLog: LogWriter?
    /// The certificate of each listener, in their order; `nil` for a plain one.
    var certificates: [TLSContext?]
    var certificateWatch: CertificateWatch
    /// What each origin is spoken to with; `nil` in the clear.
    var originCertificates: [TLSContext?]
    /// Counts the looks at certificates; an older one is not made any more.
    var watchNumber = 0
    var reloading = Reloading.none
    /// When the configuration was last read, with success or without.
    var reloadTriedAt: Int64
    var refusedReload: String?
    var refusedReloads: UInt64 = 0
    var ending = Ending.none
    var upgrading = Upgrading.none
    var shortage = AcceptShortage()
    /// What the log says of the store: why it can't be written, and why not read.
    var writingReport = StateReport<JournalError?>(nil)
    var readingReport = StateReport<JournalError?>(nil)
    var lanesWithClients = 0

    /// Starts the gateway, which goes on until a signal or ``stop()``; `file` is the
    /// configuration's, for reloads and messages. Whatever stops a start is thrown; nothing is
    /// listened on then.
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
                server.keys,
                server.issuer,
                also: [server.sessions.answer, server.devices.answer]
            )
            server.start()
            return server
        } catch {
            // What was said before the failure goes before what says it.
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
        self.file = file
        self.outputs = outputs
        log = MessageStream(writer: outputs.messages).logger(configuration.log.level)
        self.surroundings = surroundings
        reloadTriedAt = startedAt
        let count = Self.count(configuration.lanes)
        try DescriptorLimit.raise(lanes: count, listeners: configuration.listeners.count)
        certificateWatch = CertificateWatch(LoadedCertificates.stamps(of: configuration), startedAt)
        let preparation = try Self.prepared(configuration, tickets, surroundings, file)
        resolver = Resolver(lookUp: surroundings.lookUp)
        lookUpPace = surroundings.lookUpPace
        var inherited = surroundings.inherited
        certificates = preparation.certificates.listeners
        sockets = try ListenerSet.clients(configuration, certificates, lanes: count, &inherited)
        addresses = sockets.map(\.text)
        let adminSockets = try ListenerSet.operators(configuration, &inherited)
        Self.tell(of: inherited.discardRest(), log)
        originCertificates = preparation.certificates.origins
        let bound = sockets + [adminSockets].compactMap(\.self)
        if surroundings.ownsProcess {
            try Self.giveUpPrivileges(configuration.process, bound, file, log)
        }
        (keys, madeStore) = try StoreOpening.table(configuration, surroundings, log)
        let orders = try Self.orders(of: surroundings.predecessor, book) ?? preparation.orders
        let configuration = configuration.ordered(by: orders)
        self.configuration = configuration
        rollouts = Rollouts(orders, configuration)
        issuer = try StoreOpening.issuer(configuration, keys, surroundings.predecessor)
        sessions = try Self.sessions(configuration.sessions.limits, surroundings.predecessor)
        apple = AppleDesk(configuration.apple, wallClock: surroundings.wallClock)
        devices = DeviceDesk(apple, configuration.apple, log, surroundings.wallClock)
        servers = ServerBook(configuration, resolver)
        Self.warn(preparation.warnings + servers.problems(configuration), log)
        let settings = ProxySettings(configuration, servers, devices, originCertificates, book)
        origins = settings.origins
        let accessLog = try outputs.accessLog(configuration.log.access)
        self.accessLog = accessLog
        admission = EnrolmentAdmission(configuration.enrolment.admission)
        let services = Self.services(configuration, keys, issuer, sessions, admission, probes)
        let addresses = Self.addressTable(configuration.limits)
        var units: [LaneUnit] = []
        for number in 0..<count {
            let lane = try Self.lane(number, surroundings)
            let proxy = ProxyLane(
                lane: lane,
                settings: settings,
                judge: Judge(configuration, keys, issuer, sessions),
                services: services,
                issuer: issuer,
                keys: keys,
                addresses: addresses,
                held: held,
                writeLog: { accessLog?.write($0, dropped: $1) }
            )
            units.append(LaneUnit(lane, proxy))
        }
        self.units = units
        admin = try adminSockets.map { socket throws(GatewayError) in
            (socket, try Self.lane(count, surroundings))
        }
        adminAddress = adminSockets?.text
        for set in bound { try set.listen() }
    }

    private static func prepareProcess(_ surroundings: Surroundings) {
        // A peer or reader that is gone, or a file at its limit, is an error of that write.
        for number in [SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
        if surroundings.watchesSignals { SignalWatch.ignoreUntilWatched() }
        if surroundings.ownsProcess { forbidNewPrivileges() }
    }

    static func warn(_ problems: [ConfigurationReading.Problem], _ log: Logger) {
        for problem in problems { log.warning("\(problem.text)") }
    }

    private static func lane(
        _ number: Int,
        _ surroundings: Surroundings
    ) throws(GatewayError) -> Lane {
        do throws(SocketError) {
            return try Lane(number: number, wallClock: surroundings.wallClock)
        } catch {
            throw GatewayError(
                "lane \(number): \(error)",
                hint: "Raise the limit of descriptors."
            )
        }
    }

    /// The wall clock of the lanes, seconds since 1970.
    var wallSeconds: Int64 { surroundings.wallClock() / 1_000 }

    private static func addressTable(_ limits: LimitSettings) -> AddressTable {
        AddressTable(
            capacity: limits.addresses,
            key: (RandomOctets.word(), RandomOctets.word())
        )
    }

    static func count(_ lanes: LaneCount) -> Int {
        switch lanes {
        case .perCore: max(Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), 1)
        case .fixed(let count): count
        }
    }

    private func start() {
        if surroundings.watchesSignals { SignalWatch.noteStops() }
        outputs.accessLosses.watch { [self] notice in
            control.async { self.accessLogChanged(notice) }
        }
        outputs.refusalLosses.watch { [self] notice in
            control.async { self.refusalsLeftOut(notice) }
        }
        outputs.messageLosses.watch { [self] notice in
            control.async { self.messagesChanged(notice) }
        }
        keys.committer.watch { [self] error in control.async { self.storeChanged(error) } }
        keys.watchReading { [self] error in control.async { self.storeReadChanged(error) } }
        apple.watch { [self] notice, detail in
            control.async { self.appleChanged(notice, detail) }
        }
        for (index, unit) in units.enumerated() {
            keys.committer.register(unit)
            unit.start(sockets.map { $0.socket(ofLane: index) }) { [self] error in
                control.async { self.acceptChanged(error) }
            } certificateRefused: { [self] reason, address, count in
                control.async { self.certificateRefused(reason, address, count) }
            } leftOut: { [outputs] in
                outputs.refusalLosses.lost($0)
            } proxiedFailed: { [self] fault in
                control.async { self.proxiedFailed(fault) }
            }
        }
        units.first?.watchOrigins { [self] notice in
            control.async { self.originsChanged(notice) }
        }
        let desk = SnapshotDesk(self)
        probes.ask(desk)
        startAdmin(desk)
        control.async {
            self.scheduleLookUp()
            self.watchCertificates()
            self.collectReports()
            self.startGuards()
        }
        startRenewing(surroundings.wallClock)
        startExpiring()
        startReadingSecrets()
        guard surroundings.watchesSignals else { return control.async { self.announce() } }
        // Signals are watched before the gateway says that it serves: they may follow at once.
        signals = SignalWatch(on: control) { [self] in
            announce()
        } handle: { [self] request in
            switch request {
            case .stop: stop()
            case .reload: reload()
            case .reopenLog: reopenLog()
            case .upgrade: upgrade { _ in }
            }
        }
    }

    private func startAdmin(_ desk: SnapshotDesk) {
        guard let (socket, lane) = admin else { return }
        operatorTokens.replace(by: configuration.operatorToken)
        let proxy = ProxyLane.operators(
            lane,
            desk,
            keys: keys,
            issuer: issuer,
            calls: operatorCalls
        )
        let unit = LaneUnit(lane, proxy)
        adminUnit = unit
        // Operators come in also when clients have taken all descriptors that are theirs.
        unit.start([socket.socket(ofLane: 0)], descriptorsMax: .max) { _ in }
    }

    private func announce() {
        for set in sockets {
            let lent = if case .lent = set.ownership { true } else { false }
            log.notice("listening on \(set.text)\(lent ? ", a socket of the service manager" : "")")
        }
        if let adminAddress { log.notice("admin on \(adminAddress)") }
        log.notice(
            "\(units.count) lanes, \(configuration.rules.rules.count) rules, \(keys.count) keys"
        )
        if let text = configuration.spillText { log.notice("\(text)") }
        tell(.ready, status: servingStatus)
        startWatchdog()
    }
}
