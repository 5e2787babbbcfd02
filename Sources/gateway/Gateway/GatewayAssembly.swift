import ConfigurationReading
import Cryptography
import EventLoops
import Glibc
import KeyStore
import Logging
import Proxy
import Tokens
import Verification

/// The parts of a gateway, made in the order of a start: see `Gateway`. Nothing accepts yet.
struct GatewayAssembly {
    let plane: ControlPlane
    let listening: Listening
    let parts: Reloads.Parts
    let reloads: Reloads
    let transferred: TransferredParts
    /// Whether this start has created the database, since there was none.
    let madeStore: Bool
    /// The ledger of held content, for all event loops.
    let held = HeldLedger()

    init(
        _ configuration: GatewayConfiguration,
        file: String,
        surroundings: GatewaySurroundings,
        outputs: LogOutputs
    ) throws(GatewayError) {
        let log = outputs.logger(configuration.log.level)
        try DescriptorLimit.raise(loops: configuration.loops.onThisMachine, configuration)
        let watch = CertificateWatch(
            LoadedCertificates.stamps(of: configuration),
            surroundings.startedAt
        )
        let tickets = TicketKeys(now: ControlPlane.monotonicSeconds)
        let preparation = try Preparation.complete(
            configuration,
            tls: TLSSurroundings(tickets, surroundings),
            file: file
        )
        let resolver = Resolver(lookUp: surroundings.lookUp)
        listening = try Listening(
            configuration,
            certificates: preparation.certificates.listeners,
            inherited: surroundings.inherited,
            wallClock: surroundings.wallClock,
            log: log
        )
        if surroundings.ownsProcess {
            try Privileges.drop(configuration.process, listening.all, file: file, log: log)
        }
        let servers = ServerRegistry(configuration, resolver)
        let keys: KeyTable
        (keys, madeStore) = try StoreOpening.table(configuration, surroundings, log: log)
        let registry = OriginRegistry()
        for server in surroundings.predecessor?.state?.handed.drained ?? [] {
            registry.drain(server)
        }
        let start = try OrdersAtStart(
            configuration,
            from: surroundings.predecessor,
            kept: preparation.keptOrders,
            log: log
        )
        let configuration = configuration.ordered(by: start.inForce)
        let judging = try JudgingParts(
            keys: keys,
            issuer: StoreOpening.issuer(configuration, keys, from: surroundings.predecessor),
            sessions: SessionTable.goingOn(
                configuration.sessions,
                from: surroundings.predecessor
            )
        )
        let (calls, parties) = Self.parties(
            configuration,
            keys,
            wallClock: surroundings.wallClock,
            log: log
        )
        ControlPlane.warn(preparation.warnings + servers.problems(configuration), log)
        let settings = ProxySettings(
            configuration,
            servers,
            parties: parties,
            certificates: preparation.certificates.origins,
            registry: registry
        )
        let accessLog = try outputs.accessLog(configuration.log.access)
        let admission = EnrolmentAdmission(configuration.enrolment)
        let proxies = ProxyParts(
            settings: settings,
            judging: judging,
            admission: admission,
            held: held,
            accessLog: accessLog
        )
        let plane = ControlPlane(
            configuration,
            file: file,
            surroundings: surroundings,
            loops: try proxies.loops(configuration, surroundings.wallClock),
            log: log
        )
        self.plane = plane
        let certificates = Certificates(
            plane,
            preparation.certificates,
            watch: watch,
            tickets: tickets
        )
        let rollouts = Rollouts(plane, start)
        let (guards, reporting) = (Guards(plane, rollouts, loops: plane), Reporting(plane))
        let shared = Fleet.Parts(
            rollouts: rollouts,
            guards: guards,
            reporting: reporting,
            admission: admission
        )
        parts = Reloads.Parts(
            certificates: certificates,
            directory: OriginDirectory(
                plane,
                OriginDirectory.Found(
                    servers: servers,
                    origins: settings.origins,
                    registry: registry
                ),
                resolver: resolver,
                certificates: certificates,
                parties: parties
            ),
            rollouts: rollouts,
            guards: guards,
            fleet: start.fleet.map { Fleet(plane, $0, parts: shared) },
            reporting: reporting,
            apple: AppleOperations(plane, calls, parties.devices, keys),
            google: GoogleOperations(plane, configuration, judging.statusLists, parties.https),
            parties: parties,
            judging: judging,
            outputs: outputs,
            operatorTokens: configuration.admin.map { OperatorTokenBox($0.token) }
        )
        reloads = Reloads(plane, parts, admission: admission, accessLog: accessLog)
        transferred = TransferredParts(
            keys: keys,
            challenges: judging.issuer,
            sessions: judging.sessions,
            devices: parties.devices,
            tickets: tickets,
            registry: registry
        )
    }

    private static func parties(
        _ configuration: GatewayConfiguration,
        _ keys: KeyTable,
        wallClock clock: @escaping @Sendable () -> Int64,
        log: Logger
    ) -> (calls: AppleClient, RequestParties) {
        let https = HTTPSCalls()
        let calls = AppleClient("apple", configuration.apple, https, wallClock: clock)
        let parties = RequestParties(
            devices: DeviceCheckClient(calls, configuration.apple, log, clock),
            proofs: ProofChecks(configuration, keys, https, log, clock),
            https: https
        )
        return (calls, parties)
    }
}

/// What the proxies of all event loops share.
private struct ProxyParts {
    let settings: ProxySettings
    let judging: JudgingParts
    let admission: EnrolmentAdmission
    let held: HeldLedger
    let accessLog: LogWriter?

    func loops(
        _ configuration: GatewayConfiguration,
        _ wallClock: @escaping @Sendable () -> Int64
    ) throws(GatewayError) -> [LoopUnit] {
        let services = judging.services(configuration, admission)
        let addresses = AddressTable(
            capacity: configuration.limits.addressesMax,
            key: (RandomBytes.word(), RandomBytes.word())
        )
        var loops: [LoopUnit] = []
        for number in 0..<configuration.loops.onThisMachine {
            let loop = try EventLoop.numbered(number, wallClock)
            let proxy = ProxyLoop(
                loop: loop,
                settings: settings,
                judge: judging.judge(configuration),
                services: services,
                issuer: judging.issuer,
                keys: judging.keys,
                addresses: addresses,
                held: held,
                writeLog: { [accessLog] in accessLog?.write($0, dropped: $1) }
            )
            loops.append(LoopUnit(loop, proxy))
        }
        return loops
    }
}
