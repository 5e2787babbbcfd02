import ConfigurationReading
import EventLoops
import Parties
import Proxy
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
        let ground = try GatewayGround(
            configuration,
            file: file,
            surroundings: surroundings,
            log: log
        )
        (listening, madeStore) = (ground.listening, ground.madeStore)
        let configuration = configuration.ordered(by: ground.orders.inForce)
        let decider = try ground.decider(configuration, from: surroundings.predecessor)
        let calls = OutsideCalls(
            configuration,
            decider,
            wallClock: surroundings.wallClock,
            log: log
        )
        let judging = JudgingParts(decider: decider, statusList: calls.parties.statusList)
        ControlPlane.warn(ground.warnings(configuration), log)
        let settings = ProxySettings(
            configuration,
            ground.servers,
            calls: calls,
            certificates: ground.certificates.origins,
            registry: ground.registry
        )
        let accessLog = try outputs.accessLog(configuration.log.access)
        let proxies = ProxyParts(
            settings: settings,
            judging: judging,
            admission: EnrolmentAdmission(configuration.enrolment),
            held: held,
            accessLog: accessLog
        )
        plane = ControlPlane(
            configuration,
            file: file,
            surroundings: surroundings,
            loops: try proxies.loops(configuration, surroundings.wallClock),
            log: log
        )
        let making = PartsMaking(
            plane: plane,
            configuration: configuration,
            ground: ground,
            proxies: proxies,
            calls: calls,
            outputs: outputs
        )
        parts = making.parts()
        reloads = Reloads(plane, parts, admission: proxies.admission, accessLog: accessLog)
        transferred = TransferredParts(
            decider: decider,
            devices: calls.parties.devices,
            tickets: ground.tickets,
            registry: ground.registry
        )
    }
}

/// What the parts on the control queue are made from.
private struct PartsMaking {
    let plane: ControlPlane
    let configuration: GatewayConfiguration
    let ground: GatewayGround
    let proxies: ProxyParts
    let calls: OutsideCalls
    let outputs: LogOutputs

    func parts() -> Reloads.Parts {
        let judging = proxies.judging
        let certificates = Certificates(
            plane,
            ground.certificates,
            watch: ground.watch,
            tickets: ground.tickets
        )
        let rollouts = Rollouts(plane, ground.orders)
        let (guards, reporting) = (Guards(plane, rollouts, loops: plane), Reporting(plane))
        let shared = Fleet.Parts(
            rollouts: rollouts,
            guards: guards,
            reporting: reporting,
            admission: proxies.admission,
            rates: judging.rates
        )
        return Reloads.Parts(
            certificates: certificates,
            directory: OriginDirectory(
                plane,
                OriginDirectory.Found(
                    servers: ground.servers,
                    origins: proxies.settings.origins,
                    registry: ground.registry
                ),
                resolver: ground.resolver,
                certificates: certificates,
                calls: calls
            ),
            rollouts: rollouts,
            guards: guards,
            fleet: ground.orders.fleet.map { Fleet(plane, $0, parts: shared) },
            reporting: reporting,
            calls: calls,
            judging: judging,
            outputs: outputs,
            operatorTokens: configuration.admin.map { OperatorTokenBox($0.token) }
        )
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
        let shared = SharedTables(
            decider: judging.decider,
            addressesMax: configuration.limits.addressesMax,
            held: held
        )
        var loops: [LoopUnit] = []
        for number in 0..<configuration.loops.onThisMachine {
            let loop = try EventLoop.numbered(number, wallClock)
            let proxy = ProxyLoop(
                loop,
                settings: settings,
                judge: judging.judge(configuration),
                services: services,
                shared: shared
            )
            proxy.write(logTo: { [accessLog] in accessLog?.write($0, dropped: $1) })
            loops.append(LoopUnit(loop, proxy))
        }
        return loops
    }
}
