import ConfigurationReading
import EventLoops
import KeyStore
import Logging
import Proxy
import Tokens

/// What a start checks, binds, reads and opens, in this order, before it makes any part.
struct GatewayGround {
    let tickets = TicketKeys(now: ControlPlane.monotonicSeconds)
    let watch: CertificateWatch
    private let preparation: Preparation
    let resolver: Resolver
    let listening: Listening
    let servers: ServerRegistry
    let keys: KeyTable
    /// Whether this start has created the database, since there was none.
    let madeStore: Bool
    let registry = OriginRegistry()
    let orders: OrdersAtStart

    init(
        _ configuration: GatewayConfiguration,
        file: String,
        surroundings: GatewaySurroundings,
        log: Logger
    ) throws(GatewayError) {
        try DescriptorLimit.raise(loops: configuration.loops.onThisMachine, configuration)
        watch = CertificateWatch(
            LoadedCertificates.stamps(of: configuration),
            surroundings.startedAt
        )
        preparation = try Preparation.complete(
            configuration,
            tls: TLSSurroundings(tickets, surroundings),
            file: file
        )
        resolver = Resolver(lookUp: surroundings.lookUp)
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
        servers = ServerRegistry(configuration, resolver)
        (keys, madeStore) = try StoreOpening.table(configuration, surroundings, log: log)
        for server in surroundings.predecessor?.state?.handed.drained ?? [] {
            registry.drain(server)
        }
        orders = try OrdersAtStart(
            configuration,
            from: surroundings.predecessor,
            kept: preparation.keptOrders,
            log: log
        )
    }

    var certificates: LoadedCertificates { preparation.certificates }

    /// Settings that are probably not intended, and names without an address.
    func warnings(_ configuration: GatewayConfiguration) -> [Problem] {
        preparation.warnings + servers.problems(configuration)
    }

    /// The decider, which goes on from the predecessor's.
    func decider(
        _ configuration: GatewayConfiguration,
        from predecessor: Predecessor?
    ) throws(GatewayError) -> Decider {
        try Decider(
            keys: keys,
            challenges: StoreOpening.issuer(configuration, keys, from: predecessor),
            sessions: SessionTable.goingOn(configuration.sessions, from: predecessor)
        )
    }
}
