import ConfigurationReading
import EventLoops
import KeyStore
import Parties
import Proxy
import Rules
package import Services
import Signatures
import Telemetry
import Tokens
import Verification

extension GatewayServer: KeySetSource {
    package func askKeySet(_ completion: @escaping @Sendable ([UInt8]?) -> Void) {
        plane.perform { [plane] in completion(plane.configuration.verdictSigner?.keySet) }
    }
}

extension GatewayServer: AdminSource {
    /// Asks every event loop for a copy of its counters, then assembles the facts.
    package func gather(_ completion: @escaping @Sendable (AdminSnapshot) -> Void) {
        plane.perform { [self] in
            // Those whose numbers the counts have: a reload may renumber them before all are there.
            let rules = ruleFacts
            plane.gather(LoopUnit.gather) { [self] loops in
                completion(snapshot(loops.sorted { $0.number < $1.number }, rules))
            }
        }
    }

    var ruleFacts: [RuleFacts] {
        let configuration = plane.configuration
        return configuration.fileRules.rules.map { rule in
            var facts = RuleFacts(
                parts.rollouts.orders.standing(of: rule),
                filed: rule,
                origin: configuration.origin(of: rule)?.name ?? ""
            )
            facts.fallback = parts.guards.facts(of: rule)
            return facts
        }
    }

    /// What operators may do at a listener beside reading its pages.
    func operatorCalls(_ listener: AdminListener, _ tokens: OperatorTokenBox) -> OperatorCalls {
        var calls = OperatorCalls()
        calls.reports = parts.reports
        calls.keySet = self
        // No page of another host has this host's own name.
        let hosts = listener.hosts + [SyslogLink.hostName].filter { !$0.isEmpty }
        calls.gate = OperatorGate(
            serving: listener.serves,
            tokens: listener.asksForToken ? tokens : nil,
            hosts: hosts
        )
        calls.devices = parts.calls.parties.devices
        calls.origins = parts.directory
        calls.rollouts = parts.rollouts
        calls.upgrades = lifecycle
        calls.refusals = parts.reports
        calls.trials = judging.trials
        return calls
    }

    private func snapshot(_ gathered: [LoopFacts], _ rules: [RuleFacts]) -> AdminSnapshot {
        // Issuer and sessions are counted for all event loops, so one of them carries their
        // numbers.
        var loops = gathered
        let (keys, sessions) = (judging.decider.keys, judging.decider.sessions)
        let issuer = judging.decider.challenges
        let configuration = plane.configuration
        let issued = issuer.issued(.assertion) &+ issuer.issued(.enrolment)
        if !loops.isEmpty {
            loops[0].tally.add(.challengesIssued, issued)
            loops[0].tally.add(.sessionsEvicted, sessions.evicted)
            loops[0].tally.add(.ratesEvicted, judging.rates.evicted)
        }
        let statistics = keys.committer.statistics
        let readFault = keys.readFault
        var snapshot = AdminSnapshot(
            version: ProgramVersion.text,
            configuration: reloads.facts,
            loops: loops,
            rules: rules,
            store: StoreFacts(
                keys: keys.count,
                revokedKeys: keys.revokedCount,
                pendingCommits: statistics.depth,
                isDegraded: statistics.isDegraded || readFault != nil,
                lastError: (readFault ?? statistics.lastError)?.description
            )
        )
        snapshot.startedAtSeconds = plane.startedAt
        let uptime = MonotonicClock.nanoseconds &- plane.startedAtTick
        snapshot.uptime = .nanoseconds(Int64(clamping: uptime))
        snapshot.verdictLabels = { VerdictSlot.labels($0) }
        if plane.isEnding { snapshot.drainState = .draining(left: lifecycle.drainLeft) }
        snapshot.droppedLogLines = parts.outputs.accessLosses.count
        snapshot.droppedMessages = parts.outputs.messageLosses.count
        snapshot.store.failedCommits = statistics.failures
        snapshot.store.expiredKeys = upkeep.expiredCount
        snapshot.store.commitSizes = statistics.sizes
        snapshot.store.commitDurations = statistics.durations
        snapshot.store.isNew = assembly.madeStore
        // A journal that decides is asked about each use.
        let isReadable =
            readFault == nil && keys.decides == .inMemory
            && statistics.lastError?.reason != .replaced
        snapshot.store.outage = isReadable ? .storeUnwritable : .storeDegraded
        snapshot.store.isNeeded = configuration.rules.needsStore(
            at: UnixTime(seconds: plane.wallSeconds),
            isReadable: isReadable && keys.committer.hasRoom
        )
        snapshot.store.waiting = statistics.waiting
        snapshot.store.turnedAway = statistics.turnedAway
        snapshot.store.lookUps = statistics.lookUps
        snapshot.store.foundLookUps = statistics.foundLookUps
        snapshot.store.database = keys.databaseStatistics
        snapshot.unsavedOrders = parts.rollouts.unsaved
        addFleet(to: &snapshot)
        snapshot.process = .current
        snapshot.host = SyslogLink.hostName
        snapshot.origins = parts.directory.facts
        snapshot.unknownServers = parts.directory.servers.unknown(configuration)
        snapshot.serverCount = configuration.origins.reduce(0) { $0 + $1.servers.count }
        snapshot.openSessions = sessions.count(now: plane.wallSeconds)
        snapshot.parties = parts.calls.facts
        snapshot.tls = parts.certificates.facts(addresses)
        let held = assembly.held
        snapshot.held.memoryBytes = held.memoryBytes
        snapshot.held.diskBytes = held.diskBytes
        snapshot.held.unsentBytes = held.unsentBytes
        return snapshot
    }

    private func addFleet(to snapshot: inout AdminSnapshot) {
        snapshot.fleet = parts.fleet?.facts
        snapshot.isDrained = plane.isDrained
        if let connection = parts.fleet?.connection {
            snapshot.store.database?.connections.append(connection)
        }
    }
}
