import ConfigurationReading
import Dispatch
import EventLoops
import HTTPWire
import Logging
import Proxy
import Services

/// The origins' servers: their addresses, their state, and which of them operators drain.
///
/// Names are looked up at start and reload, and then periodically: a name without an address may
/// get one, and servers move.
final class OriginDirectory: Sendable {
    private struct State {
        var servers: ServerRegistry
        var origins: [OriginSettings]
        var pace: LookUpPace
        /// Counts the scheduled look-ups; an older one is skipped.
        var lookUpNumber = 0
    }

    /// The state of the servers, which outlives a reload.
    let registry: OriginRegistry
    let resolver: Resolver
    private let plane: ControlPlane
    private let certificates: Certificates
    private let calls: OutsideCalls
    /// The queue on which names are looked up. A reload does not wait for it.
    private let naming = DispatchQueue(label: "portcullis.naming")
    private let state: QueueBound<State>

    /// What a start has found about the servers.
    struct Found {
        let servers: ServerRegistry
        let origins: [OriginSettings]
        let registry: OriginRegistry
    }

    init(
        _ plane: ControlPlane,
        _ found: Found,
        resolver: Resolver,
        certificates: Certificates,
        calls: OutsideCalls
    ) {
        self.plane = plane
        registry = found.registry
        self.resolver = resolver
        self.certificates = certificates
        self.calls = calls
        let pace = plane.surroundings.lookUpPace
        state = QueueBound(
            State(servers: found.servers, origins: found.origins, pace: pace),
            on: plane.queue
        )
    }

    var servers: ServerRegistry { state.value.servers }

    /// The names of all servers of the configuration, also of those without an address.
    private var serverNames: Set<String> {
        Set(plane.configuration.origins.flatMap(\.addresses).map(\.text))
    }

    /// The settings of the event loops, from current knowledge.
    var settings: ProxySettings {
        ProxySettings(
            plane.configuration,
            state.value.servers,
            calls: calls,
            certificates: certificates.origins,
            registry: registry
        )
    }

    /// A reload has looked up the names.
    func loaded(_ servers: ServerRegistry, _ origins: [OriginSettings]) {
        state.value.servers = servers
        state.value.origins = origins
        registry.keep(origins, servers: serverNames)
        scheduleLookUp()
    }

    // MARK: Names

    /// Looks up the names after a pause; the next call replaces this one.
    func scheduleLookUp() {
        state.value.lookUpNumber += 1
        let origins = plane.configuration.origins
        let hasNames = origins.contains { origin in
            origin.addresses.contains { if case .name = $0 { true } else { false } }
        }
        guard hasNames, !plane.isDraining else { return }
        let number = state.value.lookUpNumber
        let shortest = origins.map(\.rules.resolveInterval).min() ?? 30_000
        let isComplete = state.value.servers.unknown(plane.configuration).isEmpty
        let pause = min(state.value.pace.next(isComplete: isComplete), .milliseconds(shortest))
        plane.perform(after: DispatchTimeInterval(pause)) { [self] in
            guard isCurrent(number) else { return }
            lookUp(number)
        }
    }

    private func isCurrent(_ number: Int) -> Bool {
        number == state.value.lookUpNumber && !plane.isDraining
    }

    private func lookUp(_ number: Int) {
        let (wanted, resolver) = (plane.configuration.origins.flatMap(\.addresses), resolver)
        naming.async { [self] in
            let findings = resolver.addresses(of: wanted)
            plane.perform { self.lookedUp(findings, number) }
        }
    }

    private func lookedUp(_ findings: [ServerAddress: Resolver.Finding], _ number: Int) {
        // A reload that came meanwhile has looked up its own names.
        guard isCurrent(number) else { return }
        let changes = state.value.servers.take(findings)
        for change in changes { tell(change) }
        let moved = changes.filter { $0.kind != .lost }.map(\.server)
        if !moved.isEmpty {
            let origins = plane.configuration.origins
            replaceServers(
                of: origins.indices.filter { origins[$0].addresses.contains(where: moved.contains) }
            )
        }
        scheduleLookUp()
    }

    /// Serves these origins with the currently known servers and certificates.
    func replaceServers(of places: [Int]) {
        let settings = settings
        state.value.origins = settings.origins
        registry.keep(settings.origins, servers: serverNames)
        for loop in plane.loops { loop.replaceServers(settings, of: Set(places)) }
    }

    private func tell(_ change: ServerRegistry.Change) {
        let name = change.server.text
        let count = state.value.servers.addresses[change.server]?.count ?? 0
        let addresses = "\(count) address\(count == 1 ? "" : "es")"
        switch change.kind {
        case .found: plane.log.notice("the server \(name) is known now, with \(addresses)")
        case .moved: plane.log.notice("the server \(name) has moved; it has \(addresses)")
        case .lost:
            plane.log.warning(
                """
                the server \(name) has no address any more; the last ones stay in use; next: look \
                at its DNS entry
                """
            )
        }
    }

    // MARK: How servers stand

    func changed(_ notice: OriginWatch.Notice) {
        switch notice {
        case .allOut(let origin, let servers):
            let list = servers.joined(separator: ", ")
            plane.log.error(
                """
                no server of the origin \(origin) can serve: \(list); its requests are answered \
                502 or 503; next: see whether the servers run and can be reached; more: portcullis \
                help PortcullisOriginDown
                """
            )
        case .back(let origin): plane.log.notice("the origin \(origin) has a server again")
        }
    }

    /// The current state of the servers.
    var facts: [OriginFacts] {
        let now = MonotonicClock.milliseconds
        return state.value.origins.map { origin in
            var facts = OriginFacts(
                name: origin.name,
                servers: origin.servers.map { Self.facts($0, of: origin, now) }
            )
            if origin.servers.contains(where: { $0.connectionsMax != nil }) {
                facts.waiting = origin.state.waiting
            }
            facts.servers += unknownServers(of: origin.name)
            return facts
        }
    }

    /// The servers of an origin whose names have no address, as in the configuration.
    private func unknownServers(of origin: String) -> [OriginFacts.Server] {
        let known = state.value.servers.addresses
        let servers = plane.configuration.origins.first { $0.name == origin }?.servers ?? []
        return servers.filter { known[$0.address] == nil }.map { server in
            var facts = OriginFacts.Server(unknown: server.address.text)
            facts.weight = server.weight
            facts.isBackup = server.isBackup
            return facts
        }
    }

    /// The address of a name; the server's name in the configuration where it has none.
    private static func address(of server: OriginServerSettings) -> String {
        guard !server.address.isUnix else { return server.name }
        let text = server.address.ipAddress.text
        return server.name.contains(text) ? server.name : text
    }

    private static func facts(
        _ server: OriginServerSettings,
        of origin: OriginSettings,
        _ now: UInt64
    ) -> OriginFacts.Server {
        let state = server.state
        let condition = state.condition(now: now)
        var facts = OriginFacts.Server(
            name: server.name,
            address: address(of: server),
            state: condition.rawValue,
            canServe: !condition.isOut
        )
        facts.weight = server.weight
        facts.isBackup = server.role == .backup
        facts.active = state.active
        if let most = server.connectionsMax {
            facts.connections = (origin.state.connections(of: state) ?? 0, most)
        }
        facts.requests = state.served
        facts.waited = state.waited
        facts.failures = state.failures
        facts.ejections = state.ejections
        facts.lastFailure = state.lastFailure.map { .init(word: $0.what.text, at: $0.at) }
        facts.lastCheck = state.lastCheck.map { .init(word: $0.what.text, at: $0.at) }
        return facts
    }
}

extension OriginDirectory: OriginDraining {
    package func drain(
        _ server: String,
        _ change: DrainChange,
        then done: @escaping @Sendable (DrainOutcome) -> Void
    ) {
        plane.perform { [self] in
            guard case .none = plane.upgrading else { return done(.upgrading) }
            guard serverNames.contains(server) else { return done(.unknownServer) }
            let named = state.value.origins.flatMap(\.servers).filter { $0.name == server }
            let now = MonotonicClock.milliseconds
            for server in named {
                switch change {
                case .drain: server.state.drain()
                case .undrain: server.state.undrain(now: now)
                }
            }
            switch change {
            case .drain: registry.drain(server)
            case .undrain: registry.undrain(server)
            }
            plane.log.notice("the server \(server): \(change.rawValue), as asked")
            done(.made(addresses: named.count))
        }
    }
}
