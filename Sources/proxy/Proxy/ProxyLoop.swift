import Cryptography
package import EventLoops
package import HTTPWire
package import KeyStore
import Rules
package import Services
package import Telemetry
import Tokens
package import Verification

/// The state of the proxy on one event loop.
///
/// Lives on the event loop's queue. Created once; a reload replaces `settings`.
package final class ProxyLoop {
    package let loop: EventLoop
    private(set) var settings: ProxySettings
    /// The number of the current settings; see ``ClientPeer/settingsNumber``.
    private(set) var settingsNumber: UInt32 = 0
    @exclusivity(unchecked) var tally: Tally
    /// The data about requests for reports, guards of rules and `portcullis why`.
    @exclusivity(unchecked) var seen: Seen
    var judge: Judge
    /// The services, which answer without an origin.
    private(set) var services: ServiceTable
    private let shared: SharedTables
    /// Makes the calls on files of held content.
    let files = FileThread()
    @exclusivity(unchecked) private(set) var pools: [OriginPool]
    /// Watches the origins' servers for all event loops; `nil` on the other loops.
    private var watch: OriginWatch?
    /// Requests that wait for a commit, in the order of their tickets.
    private(set) lazy var commits = CommitQueue(self)
    var log = AccessLog()
    /// Chooses the requests that are recorded.
    var spanSampler = LogSampler()

    /// Makes the names of requests.
    @exclusivity(unchecked) var ids: RequestIDSource

    /// Memory that only one event uses at a time.
    @exclusivity(unchecked) var scratch = LoopScratch()
    var connections = OpenConnections()
    /// The gateway drains: connections close after their request.
    private var ending = LoopEnding.no

    /// A loop whose log goes nowhere: see ``write(logTo:)``.
    package init(
        _ loop: EventLoop,
        settings: ProxySettings,
        judge: Judge,
        services: ServiceTable,
        shared: SharedTables
    ) {
        self.loop = loop
        self.settings = settings
        self.judge = judge
        self.services = services
        self.shared = shared
        shared.held.addLoop()
        ids = RequestIDSource(key: (RandomBytes.word(), RandomBytes.word()))
        seen = Seen(settings.rules)
        tally = Tally(ruleCount: settings.rules.rules.count, verdictSlots: VerdictSlot.count)
        pools = []
        pools = settings.origins.map { OriginPool($0, on: loop, host: self) }
        // Event loop and proxy reference each other until the end. A weak reference would make
        // Swift count all references to the object in a slower way.
        loop.iterationEnded = { [self] in iterationEnded() }
        loop.iterationLasts = { [self] in wakeWriter() }
    }

    /// Takes a new configuration. Requests under way keep theirs; pooled connections are dropped.
    package func reload(
        _ settings: ProxySettings,
        judge: Judge,
        services: ServiceTable,
        writeLog: @escaping LogSink
    ) {
        write(logTo: writeLog)
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

    /// Writes the log to another destination; called on the event loop's queue. Lines that were
    /// gathered before go to the old one.
    package func write(logTo sink: @escaping LogSink) {
        log.pass()
        log.sink = sink
    }

    /// Takes new modes and rollouts of the same rules. Requests under way keep theirs.
    package func replaceRules(_ settings: ProxySettings, judge: Judge, services: ServiceTable) {
        self.settings = settings
        seen.guards = GuardCounts(settings.rules, seen.guards.hash)
        settingsNumber &+= 1
        self.judge = judge
        self.services = services
    }

    /// Hands over the counts of rules with a guard, and resets them.
    package func takeGuardCounts() -> [GuardCounts.Entry] { seen.guards.take() }

    /// Counts installs by another hash: for guards from the beginning.
    package func hashInstalls(by hash: InstallHash) {
        seen.guards = GuardCounts(settings.rules, hash)
        seen.reports.hash = hash
    }

    /// Starts to watch the origins' servers for all event loops, after this loop has started.
    package func watchOrigins(_ tell: @escaping @Sendable (OriginWatch.Notice) -> Void) {
        let watch = OriginWatch(
            on: loop,
            tryServers: { [unowned self] in for pool in pools { pool.tryServers() } },
            tell: tell
        )
        self.watch = watch
        watch.take(settings.origins)
    }

    /// Takes new addresses of the servers of some origins. Requests under way keep theirs.
    /// Addresses that stay, and the other origins, keep their pooled connections.
    package func replaceServers(_ settings: ProxySettings, of origins: Set<Int>) {
        self.settings = settings
        settingsNumber &+= 1
        for place in origins where pools.indices.contains(place) {
            let (origin, before) = (settings.origins[place], pools[place])
            pools[place] = OriginPool(origin, on: loop, host: self, replacing: before)
            before.retire(to: pools[place])
        }
        watch?.take(settings.origins)
    }

    /// The listener has stopped accepting for a while.
    package func acceptPaused() { tally.add(.acceptPauses) }

    /// A copy of the counters, the number of open client connections, and the number of idle
    /// connections to origins.
    package var counted: (clients: Int, pooled: Int, tally: Tally) {
        (connections.count, pools.reduce(0) { $1.servers.reduce($0) { $0 + $1.idleCount } }, tally)
    }

    /// A batch has ended, with an outcome for each request that waits for one of its tickets.
    package func commitEnded(_ report: CommitReport) { commits.ended(report) }

    /// Hands over the counts for reports, and resets them.
    package func takeReport() -> [ReportCounts.Entry] { seen.reports.take() }

    /// Begins to drain: every response announces the end of its connection, and idle clients have
    /// ``Timeouts/drainIdle`` to send a request that is on its way.
    package func drain() {
        if case .no = ending { ending = .begun(nil) }
        for pool in pools { pool.closeIdle() }
        for client in Array(connections.clients.values) { client.drain() }
        // Headers that are on their way have a little longer, too.
        for connection in connections.proxied.values {
            connection.setDeadline(milliseconds: settings.timeouts.drainIdle)
        }
    }

    /// Ends a drain that was not the end: connections stay open again. Those that were told that
    /// they end do so.
    package func resume() { if case .begun(nil) = ending { ending = .no } }

    /// Calls the closure once, at the end of an iteration after which no client is left. No further
    /// clients are accepted.
    package func whenEmptied(_ emptied: @escaping () -> Void) { ending = .begun(emptied) }

    /// Ends the requests and connections that have not ended by themselves.
    package func abort() {
        for client in Array(connections.clients.values) { client.abort() }
        for connection in Array(connections.proxied.values) { connection.end(.unused) }
    }

    /// The gateway ends: connections close after their request.
    package var isDraining: Bool { if case .no = ending { false } else { true } }

    // MARK: Scratch

    var addresses: AddressTable { shared.addresses }
    var held: HeldLedger { shared.held }

    /// The memory in which a head is read, for use in ``ClientStreamOwner/begin(_:fault:)``.
    package var heads: HeadScratch { scratch.heads }
    /// The memory in which HTTP/2's heads are built.
    package var headMemory: HeadMemory { scratch.headMemory }

    /// An empty array for a head that goes to an origin; give it back with ``giveBack(head:)``.
    func takeHead() -> [UInt8] { scratch.takeHead() }

    func giveBack(head: inout [UInt8]) { scratch.giveBack(head: &head) }

    /// A fresh challenge for an assertion, as text.
    func challenge() -> String {
        String(decoding: shared.decider.issue(.assertion, now: wallSeconds), as: UTF8.self)
    }

    /// The wall clock in seconds since 1970.
    var wallSeconds: Int64 { loop.wallMilliseconds / 1000 }

    /// Now as an IMF-fixdate.
    package var date: [UInt8] { scratch.date(at: wallSeconds) }

    private func wakeWriter() { shared.decider.keys.kick(isBusy: loop.isBusy) }

    private func iterationEnded() {
        wakeWriter()
        log.pass()
        let iteration = loop.iteration
        tally.add(.loopIteration, nanoseconds: iteration.nanoseconds)
        if iteration.polls > 0 {
            tally.add(.loopPolls, UInt64(iteration.polls))
            tally.add(.iterationEvents, size: iteration.events)
        }
        if case .begun(let emptied?) = ending, connections.count == 0 { end(emptied) }
    }

    /// No client is left, and the last lines of the log are written.
    private func end(_ emptied: () -> Void) {
        ending = .begun(nil)
        // Both reference this object.
        loop.iterationEnded = nil
        loop.iterationLasts = nil
        // Requests that have ended reference it too.
        commits.end()
        watch?.end()
        for pool in pools { pool.retire(to: nil) }
        emptied()
    }
}

/// What the event loops share.
package struct SharedTables {
    let decider: Decider
    let addresses: AddressTable
    let held: HeldLedger

    /// - addressesMax: addresses that are distinguished.
    package init(
        decider: Decider,
        addressesMax: Int,
        held: HeldLedger = HeldLedger()
    ) {
        self.decider = decider
        addresses = AddressTable(
            capacity: addressesMax,
            key: (RandomBytes.word(), RandomBytes.word())
        )
        self.held = held
    }
}

/// Whether the event loop drains.
private enum LoopEnding {
    case no
    /// Connections close after their request. The closure, if there is one, is called when no
    /// client is left.
    case begun((() -> Void)?)
}

extension ProxyLoop {
    /// The data from requests that have ended.
    struct Seen {
        var reports: ReportCounts
        var guards: GuardCounts
        /// The last refusals. A reload keeps them.
        var refusals = RefusalMemory()

        init(_ rules: RuleSet) {
            reports = ReportCounts(rules)
            guards = GuardCounts(rules)
        }
    }

    /// Sets the functions that are called at a limited rate about refused connections and requests.
    ///
    /// - proxiedFailed: a connection without a valid PROXY header.
    /// - certificateRefused: a client's certificate was refused or missing; with the number of
    ///   cases since the last call.
    /// - refusalsLeftOut: the number of refusals that have left no line.
    package func report(
        proxiedFailed: @escaping (ProxiedFault) -> Void,
        certificateRefused: @escaping (TLSFailure.Reason, IPAddress, Int) -> Void,
        refusalsLeftOut: @escaping (UInt64) -> Void
    ) {
        connections.proxiedFailed = proxiedFailed
        connections.certificateRefused = certificateRefused
        log.refusalsLeftOut = refusalsLeftOut
    }

    package var refusals: RefusalMemory { seen.refusals }
}
