package import Telemetry

/// The state of the gateway at one moment, for operators.
package struct AdminSnapshot: Sendable {
    /// Whether the gateway accepts new work.
    package enum DrainState: Sendable {
        case serving
        /// It drains: new connections are not accepted.
        ///
        /// - left: the time until running requests are cut off.
        case draining(left: Duration)
    }

    package var version: String
    /// The machine's own name; empty where it has none.
    package var host = ""
    /// When the process started: seconds since 1970.
    package var startedAtSeconds: Int64 = 0
    /// Time since then, by a clock that never goes back.
    package var uptime = Duration.zero
    package var configuration: ConfigurationFacts
    package var loops: [LoopFacts]
    /// The tallies of all event loops together.
    package var tally: Tally
    /// The rules in the order of their numbers in the tallies, the default one included.
    package var rules: [RuleFacts]
    /// The labels of a verdict slot, each name once: verdict, reason, enforced, environment.
    package var verdictLabels: @Sendable (Int) -> [(String, String)] = { _ in [] }
    /// Why the orders about rollouts in force are not on disk; `nil` where they are.
    package var unsavedOrders: String?
    package var store: StoreFacts
    /// The resources of the process; `nil` where they are not known.
    package var process: ProcessFacts?
    /// Content that is held now, on all event loops.
    package var held = HeldFacts()
    /// The parties that the gateway asks, in the order of the pages.
    package var parties: [any PartyFacts] = []
    package var tls = TLSFacts()
    /// The gateways that share the database; `nil` where none is shared.
    package var fleet: FleetFacts?
    package var openSessions = 0
    /// The origins and their servers.
    package var origins: [OriginFacts] = []
    /// Origins' servers whose name has no address.
    package var unknownServers: [String] = []
    package var serverCount = 0
    package var drainState = DrainState.serving
    /// Operators have drained the gateway of a fleet.
    package var isDrained = false
    /// Lines of the access log that were dropped.
    package var droppedLogLines: UInt64 = 0
    /// Lines of the gateway's own messages that were dropped.
    package var droppedMessages: UInt64 = 0

    /// Merges the tallies of the event loops into ``tally``.
    package init(
        version: String,
        configuration: ConfigurationFacts,
        loops: [LoopFacts],
        rules: [RuleFacts],
        store: StoreFacts
    ) {
        self.version = version
        self.configuration = configuration
        self.loops = loops
        self.rules = rules
        self.store = store
        tally = Tally(ruleCount: rules.count, verdictSlots: loops.first?.tally.verdictSlots ?? 0)
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

    /// Why no traffic should be sent here, the most lasting reason first; empty when traffic may
    /// come.
    package var unreadiness: [LocalFault] {
        (isDraining ? [.draining] : []) + (isDrained ? [.drained] : [])
            + (store.isDegraded && store.isNeeded ? [store.outage] : [])
            + (knowsServers ? [] : [.serversUnknown]) + (allAreOut ? [.originsDown] : [])
    }

    /// Failures that leave the gateway ready: it serves the requests that don't need the failed
    /// parts.
    package var degradations: [LocalFault] {
        store.isDegraded && !store.isNeeded ? [store.outage] : []
    }

    /// Whether traffic should be sent here.
    package var readiness: Readiness {
        unreadiness.first.map(Readiness.unready) ?? .ready(degradations)
    }

    /// Whether the gateway can forward any request; a gateway without origins forwards none.
    private var knowsServers: Bool { serverCount == 0 || unknownServers.count < serverCount }

    /// Whether no origin has a server that can serve. If one of several origins is out, that is no
    /// reason to send the requests for the others elsewhere.
    private var allAreOut: Bool {
        let known = origins.filter(\.isKnown)
        return !known.isEmpty && known.allSatisfy(\.isOut)
    }

    /// The verdicts that occurred for the rule at a place in ``rules``.
    func verdicts(of rule: Int) -> [(labels: [(String, String)], count: UInt64)] {
        (0..<tally.verdictSlots).compactMap { slot in
            let count = tally.verdicts(rule: rule, slot: slot)
            return count > 0 ? (verdictLabels(slot), count) : nil
        }
    }

    /// How long one origin took for the first bytes of its responses, over all rules that forward
    /// to it.
    func responseTimes(of origin: OriginFacts) -> Histogram {
        rules.enumerated().filter { $0.element.origin == origin.name }
            .reduce(into: Histogram()) { $0.merge(tally.times(.origin, rule: $1.offset)) }
    }
}

/// The configuration in use, and the result of the last reload.
package struct ConfigurationFacts: Sendable {
    /// The first configuration is 1; each accepted reload adds 1.
    package var generation: UInt64
    /// When the configuration was last read, at the start or for a reload, accepted or refused:
    /// seconds since 1970; `nil` when that is not known.
    package var lastReloadAtSeconds: Int64?
    /// Why the last reload was refused; `nil` when it was not. The earlier generation is still
    /// served.
    package var lastReloadError: String?
    /// Reloads that were refused since the start.
    package var refusedReloads: UInt64
    /// SHA-256 of the rules of the files, in hexadecimal.
    package var rulesDigest = ""

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

/// The amount of content that is held until it is judged, and of responses that wait.
package struct HeldFacts: Sendable {
    package var memoryBytes = 0
    package var diskBytes = 0
    /// Bytes of responses that wait for HTTP/2 clients.
    package var unsentBytes = 0
}

/// The state of one event loop.
package struct LoopFacts: Sendable {
    package var number: Int
    package var openConnections: Int
    /// Connections to origins that wait for a request.
    package var pooledConnections: Int
    package var tally: Tally
    /// Open upgraded connections, mostly WebSockets.
    package var openTunnels: UInt64 { tally[.tunnels] &- tally[.tunnelsClosed] }

    package init(number: Int, openConnections: Int, pooledConnections: Int = 0, tally: Tally) {
        self.number = number
        self.openConnections = openConnections
        self.pooledConnections = pooledConnections
        self.tally = tally
    }
}

/// The resources of the process, under the names that all programs use (prometheus.io, "Writing
/// client libraries").
package struct ProcessFacts: Sendable {
    package var cpuSeconds = 0.0
    package var residentBytes: UInt64 = 0
    package var virtualBytes: UInt64 = 0
    package var openDescriptors = 0
    package var descriptorsMax: UInt64 = 0
    package var threads = 0

    package init() {}

    /// - startedAtSeconds: Unix time.
    func write(startedAtSeconds: Int64, into out: inout Exposition) {
        func one(
            _ name: String,
            _ value: some CustomStringConvertible,
            type: String = "gauge",
            help: String
        ) {
            out.family("process_" + name, type: type, help: help, [([], value)])
        }
        one("cpu_seconds_total", cpuSeconds, type: "counter", help: "User and system CPU time.")
        one("resident_memory_bytes", residentBytes, help: "Memory that is resident.")
        one("virtual_memory_bytes", virtualBytes, help: "Memory that is mapped.")
        one("open_fds", openDescriptors, help: "Descriptors that are open.")
        one("max_fds", descriptorsMax, help: "Descriptors that may be open.")
        one("threads", threads, help: "Threads.")
        one("start_time_seconds", startedAtSeconds, help: "When it started, Unix time.")
    }
}

/// Gathers the data for operators.
package protocol AdminSource: Sendable {
    /// Gathers a snapshot and hands it over, once, on any thread.
    ///
    /// Never called again before the last call has completed. It may ask every event loop for a
    /// copy of its tally, but must not wait for them. A call that never completes makes every page
    /// but `/healthz` answer 503 from then on.
    func gather(_ completion: @escaping @Sendable (AdminSnapshot) -> Void)
}

/// Gives snapshots of the gateway's state.
package protocol SnapshotSource: Sendable {
    /// Gathers a snapshot and hands it over, once, on any thread; `nil` when that takes too long.
    func ask(_ completion: @escaping @Sendable (AdminSnapshot?) -> Void)
}

/// Decides which requests wait for which snapshot.
///
/// One gathering runs at a time. A request that comes meanwhile waits for the next one. So a page
/// shows all that happened before its request, and a source that hangs is asked only once. Holds
/// each waiter at most once.
package struct Gathering<Waiter: Hashable> {
    package enum Action: Equatable {
        case none
        /// Ask the source; its completion is ``ended(_:)`` with this number.
        case begin(number: UInt64)
    }

    /// The gathering that runs; `nil` for none.
    private var running: UInt64?
    private var begun: UInt64 = 0
    private var waiting: Set<Waiter> = []
    private var waitingForNext: Set<Waiter> = []

    package init() {}

    /// A new waiter wants a snapshot.
    package mutating func asked(_ waiter: Waiter) -> Action {
        guard running == nil else {
            waitingForNext.insert(waiter)
            return .none
        }
        waiting.insert(waiter)
        return begin()
    }

    /// The waiter no longer waits, or never did.
    package mutating func withdrawn(_ waiter: Waiter) {
        waiting.remove(waiter)
        waitingForNext.remove(waiter)
    }

    /// A gathering completed. Returns the waiters that it serves, and the next action. A second
    /// completion serves none.
    package mutating func ended(_ number: UInt64) -> (served: Set<Waiter>, action: Action) {
        guard running == number else { return ([], .none) }
        let served = waiting
        waiting = waitingForNext
        waitingForNext = []
        running = nil
        return (served, waiting.isEmpty ? .none : begin())
    }

    private mutating func begin() -> Action {
        begun += 1
        running = begun
        return .begin(number: begun)
    }
}
