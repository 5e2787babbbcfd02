package import Telemetry

/// How the gateway stood at one moment, as operators see it.
package struct AdminSnapshot: Sendable {
    /// Whether the gateway takes new work.
    package enum DrainState: Sendable {
        case serving
        /// It ends: new connections are not taken.
        ///
        /// - left: the time until what still runs is cut off.
        case draining(left: Duration)
    }

    package var version: String
    /// The machine's own name; empty where it has none.
    package var host = ""
    /// When the process started: seconds since 1970.
    package var startedAtSeconds: Int64
    /// Time since then, by a clock that never goes back.
    package var uptime: Duration
    package var configuration: ConfigurationFacts
    package var loops: [LoopFacts]
    /// The tallies of all event loops together.
    package var tally: Tally
    /// The rules in the order of their numbers in the tallies, the default one included.
    package var rules: [RuleFacts]
    /// The labels of a verdict slot, each name once: verdict, reason, enforced, environment.
    package var verdictLabels: @Sendable (Int) -> [(String, String)]
    package var store: StoreFacts
    /// What the process takes; `nil` where it is not known.
    package var process: ProcessFacts?
    /// Content that is held now, on all event loops.
    package var held = HeldFacts()
    /// Calls to Apple's services.
    package var apple = AppleFacts()
    package var tls = TLSFacts()
    /// Changes of devices' bits.
    package var devices = DeviceFacts()
    /// The renewal of receipts; `nil` where the store keeps none.
    package var receipts: ReceiptFacts?
    package var openSessions = 0
    /// The origins and their servers.
    package var origins: [OriginFacts] = []
    /// Origins' servers whose name has no address.
    package var unknownServers: [String] = []
    /// How many servers the origins have.
    package var serverCount = 0
    package var drainState: DrainState
    /// Lines of the access log that were dropped.
    package var droppedLogLines: UInt64
    /// Lines of the gateway's own messages that were dropped.
    package var droppedMessages: UInt64

    /// Merges the tallies of the event loops into ``tally``.
    package init(
        version: String,
        startedAtSeconds: Int64,
        uptime: Duration,
        configuration: ConfigurationFacts,
        loops: [LoopFacts],
        rules: [RuleFacts],
        verdictLabels: @escaping @Sendable (Int) -> [(String, String)],
        store: StoreFacts,
        drainState: DrainState,
        droppedLogLines: UInt64,
        droppedMessages: UInt64 = 0
    ) {
        self.version = version
        self.startedAtSeconds = startedAtSeconds
        self.uptime = uptime
        self.configuration = configuration
        self.loops = loops
        self.rules = rules
        self.verdictLabels = verdictLabels
        self.store = store
        self.drainState = drainState
        self.droppedLogLines = droppedLogLines
        self.droppedMessages = droppedMessages
        tally = Tally(
            ruleCount: rules.count,
            verdictSlots: loops.first?.tally.verdictSlots ?? 0
        )
        for loop in loops { tally.merge(loop.tally) }
    }
}

extension AdminSnapshot {
    /// Client connections that are open on all event loops.
    var openConnections: Int { loops.reduce(0) { $0 + $1.openConnections } }

    var isDraining: Bool {
        switch drainState {
        case .serving: false
        case .draining: true
        }
    }

    /// Why no traffic should be sent here, the most lasting reason first; empty when it may.
    package var unreadiness: [LocalFault] {
        (isDraining ? [.draining] : [])
            + (store.isDegraded && store.isNeeded ? [.storeDegraded] : [])
            + (knowsServers ? [] : [.serversUnknown]) + (allAreOut ? [.originsDown] : [])
    }

    /// What fails and leaves the gateway ready: it serves what can be served without.
    package var degradations: [LocalFault] {
        store.isDegraded && !store.isNeeded ? [.storeDegraded] : []
    }

    /// Whether traffic should be sent here.
    package var readiness: Readiness {
        unreadiness.first.map(Readiness.unready) ?? .ready(degradations)
    }

    /// Whether a request can be forwarded anywhere; a gateway without origins forwards none.
    private var knowsServers: Bool { serverCount == 0 || unknownServers.count < serverCount }

    /// Whether no origin has a server that can serve. One origin of several is no reason to send
    /// the requests for the others elsewhere.
    private var allAreOut: Bool {
        let known = origins.filter { !$0.servers.isEmpty }
        return !known.isEmpty && known.allSatisfy(\.isOut)
    }

    /// The verdicts that occurred of the rule at a place in ``rules``.
    func verdicts(of rule: Int) -> [(labels: [(String, String)], count: UInt64)] {
        (0..<tally.verdictSlots).compactMap { slot in
            let count = tally.verdicts(rule: rule, slot: slot)
            return count > 0 ? (verdictLabels(slot), count) : nil
        }
    }
}

/// Gathers what operators read.
package protocol AdminSource: Sendable {
    /// Gathers a snapshot and hands it over, once, on any thread.
    ///
    /// Never called again before the last call has completed. It may ask every event loop for a
    /// copy of its tally, but must not wait for them. A call that never completes makes every page
    /// but `/healthz` answer 503 from then on.
    func gather(_ completion: @escaping @Sendable (AdminSnapshot) -> Void)
}

/// Knows how the gateway stands.
package protocol SnapshotSource: Sendable {
    /// Gathers a snapshot and hands it over, once, on any thread; `nil` when that takes too long.
    func ask(_ completion: @escaping @Sendable (AdminSnapshot?) -> Void)
}

/// Which configuration is served, and what became of the last try to replace it.
package struct ConfigurationFacts: Sendable {
    /// The first configuration is 1; each accepted reload adds 1.
    package var generation: UInt64
    /// When the configuration was last read, at the start or for a reload, accepted or refused:
    /// seconds since 1970; `nil` when that is not known.
    package var lastReloadAtSeconds: Int64?
    /// Why the last reload was refused; `nil` when it was not. The generation before it is served
    /// on.
    package var lastReloadError: String?
    /// Reloads that were refused since the start.
    package var refusedReloads: UInt64

    package init(
        generation: UInt64,
        lastReloadAtSeconds: Int64? = nil,
        lastReloadError: String? = nil,
        refusedReloads: UInt64 = 0
    ) {
        self.generation = generation
        self.lastReloadAtSeconds = lastReloadAtSeconds
        self.lastReloadError = lastReloadError
        self.refusedReloads = refusedReloads
    }
}

/// How much content is held until it was judged, and how much of responses waits.
package struct HeldFacts: Sendable {
    package var memoryBytes: Int
    package var diskBytes: Int
    /// Of responses that wait for HTTP/2 clients.
    package var unsentBytes: Int

    package init(memoryBytes: Int = 0, diskBytes: Int = 0, unsentBytes: Int = 0) {
        self.memoryBytes = memoryBytes
        self.diskBytes = diskBytes
        self.unsentBytes = unsentBytes
    }
}

/// How one event loop stands.
package struct LoopFacts: Sendable {
    package var number: Int
    /// Client connections that are open.
    package var openConnections: Int
    /// Connections to origins that wait for a request.
    package var pooledConnections: Int
    package var tally: Tally
    /// Upgraded connections, WebSockets above all, that are open.
    package var openTunnels: UInt64 { tally[.tunnels] &- tally[.tunnelsClosed] }

    package init(number: Int, openConnections: Int, pooledConnections: Int = 0, tally: Tally) {
        self.number = number
        self.openConnections = openConnections
        self.pooledConnections = pooledConnections
        self.tally = tally
    }
}
