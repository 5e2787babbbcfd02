package import Challenges
import Cryptography
package import EventLoops
package import HTTP2Wire
package import HTTPWire
package import KeyStore
import Rules
package import Services
package import TLSSession
package import Telemetry
package import Verification

/// What the proxy owns on one event loop.
///
/// Lives on the event loop's queue. Made once; `settings` is replaced by a reload.
package final class ProxyLoop {
    /// Takes finished lines of the access log, and how many were dropped beside them.
    package typealias LogSink = @Sendable (_ lines: [UInt8], _ dropped: UInt64) -> Void

    package let loop: EventLoop
    private(set) var settings: ProxySettings
    package var settingsNumber: UInt32 { reloadCount }
    private var reloadCount: UInt32 = 0
    @exclusivity(unchecked) var tally: Tally
    /// What reports, guards of rules and `portcullis why` learn of requests.
    @exclusivity(unchecked) var seen: Seen
    var judge: Judge
    /// What is answered without an origin.
    private(set) var services: ServiceTable
    private let issuer: ChallengeIssuer
    let keys: KeyTable
    let addresses: AddressTable
    let held: HeldLedger
    /// Makes the calls on files of held content.
    let files = FileThread()
    @exclusivity(unchecked) private(set) var pools: [OriginPool]
    /// Looks after the origins' servers for all event loops; `nil` on the event loops that don't.
    private var watch: OriginWatch?
    /// Requests that wait for a commit, in the order of their tickets.
    private(set) lazy var commits = CommitQueue(self)
    /// The access log: its lines, and which requests have one.
    var lines: LogLines

    /// Makes the names of requests.
    @exclusivity(unchecked) var ids: RequestIDSource

    /// Memory that one event at a time uses.
    @exclusivity(unchecked) var scratch = LoopScratch()
    var connections = OpenConnections()
    /// The gateway ends: connections close after their request.
    private var ending = Ending.no

    /// `writeLog` is called on the event loop's queue.
    package init(
        loop: EventLoop,
        settings: ProxySettings,
        judge: Judge,
        services: ServiceTable,
        issuer: ChallengeIssuer,
        keys: KeyTable,
        addresses: AddressTable,
        held: HeldLedger,
        writeLog: @escaping LogSink
    ) {
        self.loop = loop
        self.settings = settings
        self.judge = judge
        self.services = services
        self.issuer = issuer
        self.keys = keys
        self.addresses = addresses
        self.held = held
        held.addLoop()
        lines = LogLines(write: writeLog)
        ids = RequestIDSource(key: (RandomBytes.word(), RandomBytes.word()))
        seen = Seen(settings.rules)
        tally = Tally(ruleCount: settings.rules.rules.count, verdictSlots: VerdictSlot.count)
        pools = []
        pools = settings.origins.map { OriginPool($0, on: loop, host: self) }
        // Event loop and proxy hold each other until the end. A weak reference would make Swift
        // count all references to the object in a slower way.
        loop.iterationEnded = { [self] in iterationEnded() }
    }

    /// Takes a new configuration: requests under way keep theirs, pooled connections are dropped.
    package func reload(
        _ settings: ProxySettings,
        judge: Judge,
        services: ServiceTable,
        writeLog: @escaping LogSink
    ) {
        // Lines that were gathered before the reload go where they were meant to go.
        lines.pass()
        lines.write = writeLog
        let before = Dictionary(
            uniqueKeysWithValues: self.settings.rules.rules.map { ($0.id, $0.index) }
        )
        tally.renumber(settings.rules.rules.map { before[$0.id] })
        seen.reports.serve(settings.rules)
        replaceRules(settings, judge: judge, services: services)
        let replaced = pools
        for pool in replaced { pool.closeIdle() }
        pools = settings.origins.map { OriginPool($0, on: loop, host: self) }
        for pool in replaced {
            pool.retire(to: pools.first { $0.settings.state === pool.settings.state })
        }
        commits.timeChanged()
        watch?.take(settings.origins)
    }

    /// Takes other modes and rollouts of the same rules. Requests under way keep theirs.
    package func replaceRules(
        _ settings: ProxySettings,
        judge: Judge,
        services: ServiceTable
    ) {
        self.settings = settings
        seen.guards = GuardCounts(settings.rules)
        reloadCount &+= 1
        self.judge = judge
        self.services = services
    }

    /// Hands over what was seen at rules with a guard, and begins anew.
    package func takeGuardCounts() -> [GuardCounts.Entry] { seen.guards.take() }

    /// Looks after the origins' servers for all event loops, once the event loop was started.
    package func watchOrigins(_ tell: @escaping @Sendable (OriginWatch.Notice) -> Void) {
        let watch = OriginWatch(
            on: loop,
            tryServers: { [unowned self] in for pool in pools { pool.tryServers() } },
            tell: tell
        )
        self.watch = watch
        watch.take(settings.origins)
    }

    /// Takes other addresses of the servers of some origins. Requests under way keep theirs, and
    /// addresses that stay, and the other origins, keep their pooled connections.
    package func replaceServers(_ settings: ProxySettings, of origins: Set<Int>) {
        self.settings = settings
        reloadCount &+= 1
        for place in origins where pools.indices.contains(place) {
            let (origin, before) = (settings.origins[place], pools[place])
            pools[place] = OriginPool(origin, on: loop, host: self, replacing: before)
            before.retire(to: pools[place])
        }
        watch?.take(settings.origins)
    }

    /// What a listener's connections speak.
    package struct Entrance {
        /// `nil` in the clear.
        let tls: TLSContext?
        let takesHTTP2: Bool
        /// How their requests ask for decisions; `nil` where they go to origins.
        let decides: DecisionForm?

        package init(tls: TLSContext?, takesHTTP2: Bool, decides: DecisionForm? = nil) {
            self.tls = tls
            self.takesHTTP2 = takesHTTP2
            self.decides = decides
        }
    }

    /// A connection was accepted.
    package func accept(
        _ descriptor: Int32,
        _ peer: SocketAddress,
        _ entrance: Entrance
    ) {
        loop.preconditionOnQueue()
        tally.add(.connectionsAccepted)
        guard hasPlace else {
            tally.add(.connectionsRefused)
            return Connection.discard(descriptor)
        }
        let source = peer.ipAddress
        let address = ownAddress(source, isUnix: peer.isUnix)
        let entry: AddressEntry?
        switch address.map({ hold($0, max: settings.limits.addressConnectionsMax) }) ?? .noRoom {
        case .held(let held): entry = held
        case .noRoom: entry = nil
        case .refused:
            tally.add(.addressConnectionsRefused)
            return Connection.discard(descriptor)
        }
        let client: HTTP1Connection
        do {
            let session = try entrance.tls.map { try TLSSession(accepting: $0) }
            let facts = ClientPeer(
                address: source,
                isUnix: peer.isUnix,
                isSecure: session != nil,
                decides: entrance.decides,
                entry: entry,
                provenance: provenance(of: source, isSecure: session != nil),
                settingsNumber: settingsNumber
            )
            client = HTTP1Connection(
                descriptor,
                peer,
                tls: session,
                client: facts,
                takesHTTP2: entrance.takesHTTP2,
                host: self,
                on: loop
            )
            client.flow = address.map(flow) ?? Self.flow(UInt64(descriptor))
            try loop.register(client)
        } catch {
            tally.add(.connectionsRefused)
            entry?.release(now: MonotonicClock.nanoseconds)
            return Connection.discard(descriptor)
        }
        connections.clients[ObjectIdentifier(client)] = client
        client.begin()
    }

    /// Whether one more connection may be there, or one more request beside another one.
    var hasPlace: Bool {
        connections.count + connections.placeCount < settings.limits.connectionsMax
    }

    /// The listener has stopped accepting for a while.
    package func acceptPaused() { tally.add(.acceptPauses) }

    /// A copy of what was counted, how many client connections are open, and how many connections
    /// to origins wait for a request.
    package var counted: (clients: Int, pooled: Int, tally: Tally) {
        (connections.count, pools.reduce(0) { $1.servers.reduce($0) { $0 + $1.idleCount } }, tally)
    }

    /// A batch has ended, with an outcome for each request that waits for one of its tickets.
    package func commitEnded(_ report: CommitReport) { commits.ended(report) }

    /// Hands over what was counted for reports, and begins anew.
    package func takeReport() -> [ReportCounts.Entry] { seen.reports.take() }

    /// The peer's address, where it is the client's. Behind a trusted proxy the address that counts
    /// is told with each request; the peer of a Unix socket has none.
    func ownAddress(_ address: IPAddress, isUnix: Bool) -> IPAddress? {
        isUnix || settings.isTrusted(address) ? nil : address
    }

    /// Whose turns the clients at an address use. Where a client has no address of its own, its
    /// connection has turns of its own.
    func flow(of address: IPAddress) -> Int { Self.flow(addresses.hash(of: address)) }

    static func flow(_ hash: UInt64) -> Int { 1 + Int(hash % UInt64(EventLoop.flowCount - 1)) }

    /// Holds a client's address.
    func hold(_ address: IPAddress, max: Int?) -> AddressTable.Holding {
        let holding = addresses.hold(address, now: MonotonicClock.nanoseconds, max: max)
        if case .noRoom = holding { tally.add(.addressTableFull) }
        return holding
    }

    func replaced(
        _ connection: any ClientConnection,
        by successor: any ClientConnection
    ) {
        connections.clients[ObjectIdentifier(connection)] = nil
        connections.clients[ObjectIdentifier(successor)] = successor
    }

    func connectionClosed(_ connection: any ClientConnection) {
        connection.client.entry?.release(now: MonotonicClock.nanoseconds)
        connections.clients[ObjectIdentifier(connection)] = nil
        tally.add(.connectionsClosed)
    }

    /// Begins to end: every response tells its client that the connection ends, and idle clients
    /// have ``Timeouts/drainIdle`` to send a request that is on its way.
    package func drain() {
        if case .no = ending { ending = .begun(nil) }
        for pool in pools { pool.closeIdle() }
        for client in Array(connections.clients.values) { client.drain() }
        drainProxied()
    }

    /// Calls once, at the end of an iteration after which no client is left. No more are accepted.
    package func whenEmptied(_ emptied: @escaping () -> Void) { ending = .begun(emptied) }

    /// Ends what has not ended by itself.
    package func abort() {
        for client in Array(connections.clients.values) { client.abort() }
        abortProxied()
    }

    package var isDraining: Bool { if case .no = ending { false } else { true } }

    // MARK: Scratch

    package var heads: HeadScratch { scratch.heads }
    package var headMemory: HeadMemory { scratch.headMemory }

    /// An empty array for a head that goes to an origin; give it back with ``giveBack(head:)``.
    func takeHead() -> [UInt8] { scratch.takeHead() }

    func giveBack(head: inout [UInt8]) { scratch.giveBack(head: &head) }

    /// A fresh challenge for an assertion, as text.
    func challenge() -> String {
        String(decoding: issuer.issue(.assertion, now: wallSeconds), as: UTF8.self)
    }

    /// The wall clock in seconds since 1970.
    var wallSeconds: Int64 { loop.wallMilliseconds / 1000 }

    /// Now as an IMF-fixdate.
    package var date: [UInt8] { scratch.date(at: wallSeconds) }

    private func iterationEnded() {
        keys.kick()
        lines.pass()
        let iteration = loop.iteration
        tally.add(.loopIteration, nanoseconds: MonotonicClock.nanoseconds &- iteration.beganAt)
        if iteration.polls > 0 {
            tally.add(.loopPolls, UInt64(iteration.polls))
            tally.add(.iterationEvents, size: iteration.events)
        }
        if case .begun(let emptied?) = ending, connections.count == 0 { end(emptied) }
    }

    /// No client is left, and the last lines of the log are out.
    private func end(_ emptied: () -> Void) {
        ending = .begun(nil)
        // Both hold this one.
        loop.iterationEnded = nil
        // Requests that have ended hold this one too.
        commits.end()
        watch?.end()
        for pool in pools { pool.retire(to: nil) }
        emptied()
    }
}

/// Whether the event loop ends.
private enum Ending {
    case no
    /// Connections close after their request. Called once no client is left, where somebody waits.
    case begun((() -> Void)?)
}

extension ProxyLoop {
    /// What is learnt of requests that have ended.
    struct Seen {
        var reports: ReportCounts
        var guards: GuardCounts
        /// The refusals that were last. A reload keeps them.
        var refusals = RefusalMemory()

        init(_ rules: RuleSet) {
            reports = ReportCounts(rules)
            guards = GuardCounts(rules)
        }
    }

    /// Says who is called, not too often, for what is refused.
    ///
    /// - proxiedFailed: a connection without a PROXY header that counts.
    /// - certificateRefused: a client's certificate was refused or missing; how many were since the
    ///   last call.
    /// - refusalsLeftOut: how many refusals have left no line.
    package func report(
        proxiedFailed: @escaping (ProxiedFault) -> Void,
        certificateRefused: @escaping (TLSFailure.Reason, IPAddress, Int) -> Void,
        refusalsLeftOut: @escaping (UInt64) -> Void
    ) {
        connections.proxiedFailed = proxiedFailed
        connections.certificateRefused = certificateRefused
        lines.refusalsLeftOut = refusalsLeftOut
    }

    /// The refusals that were last.
    package var refusals: RefusalMemory { seen.refusals }
}
