package import EventLoops
import Synchronization

/// The state of an origin that all event loops share, also after a reload.
package final class OriginState: Sendable {
    /// Delivers a call to an event loop.
    typealias Port = @Sendable (PlaceCall) -> Void

    private let servers = Mutex<[ServerState]>([])
    /// Places at servers whose connections are limited. Not used where no server has a limit.
    private let places = Mutex(Places())

    private struct Places {
        var slots = ConnectionSlots()
        /// By the number of the event loop.
        var ports: [Int: Port] = [:]
    }

    /// Retries under way.
    private let retrying = Atomic<Int>(0)

    package init() {}

    /// Whether another retry may begin.
    package func mayRetry(_ rule: RetryRule) -> Bool {
        guard rule.max > 0 else { return false }
        let active = servers.withLock { $0.reduce(0) { $0 + $1.active } }
        return rule.allows(retrying: retrying.load(ordering: .relaxed), active: active)
    }

    package func retryBegan() { retrying.wrappingAdd(1, ordering: .relaxed) }

    package func retryEnded() { retrying.wrappingSubtract(1, ordering: .relaxed) }

    /// Takes its current servers.
    ///
    /// - limits: the most connections of a server, by the number of its state.
    func take(_ servers: [ServerState], limits: [Int: Int] = [:], queueMax: Int = 0) {
        self.servers.withLock { $0 = servers }
        places.withLock { $0.slots.limit(limits, waitersMax: queueMax) }
    }

    /// Ejects a server, unless too many are ejected: the others would get its requests.
    func eject(_ server: ServerState, _ rule: Ejection, now: UInt64) {
        servers.withLock { servers in
            guard !server.isEjected(now: now) else { return }
            let ejected = servers.count { $0.isEjected(now: now) }
            guard rule.allows(ejected: ejected, of: servers.count) else { return }
            server.eject(rule, now: now)
        }
    }
}

// Places.
extension OriginState {
    package var waiting: Int { places.withLock { $0.slots.waiting } }

    /// Connections that a server has; `nil` where they are not limited.
    package func connections(of server: ServerState) -> Int? {
        places.withLock { $0.slots.connections(of: server.number) }
    }

    func hasRoom(_ server: ServerState) -> Bool {
        places.withLock { $0.slots.hasRoom(server.number) }
    }

    func reserve(_ server: ServerState) -> Bool {
        places.withLock { $0.slots.reserve(server.number) }
    }

    var lendsIdle: Bool { places.withLock { $0.slots.lendsIdle } }

    /// A place is free again. The first waiter gets it, if the server is suitable for it.
    func freed(_ server: ServerState, now: UInt64) {
        let isOffered = isOffered(server, now: now)
        places.withLock { places in
            guard let waiter = places.slots.freed(server.number, isOffered: isOffered) else {
                return
            }
            places.ports[waiter.loop]?(.granted(waiter.id, server: server.number))
        }
    }

    /// A place that a waiter could not use is free again. The next check offers it.
    func giveBack(_ server: Int) {
        places.withLock { _ = $0.slots.freed(server, isOffered: false) }
    }

    func rests(_ server: ServerState, on loop: Int, isShareable: Bool) -> ConnectionSlots.Rest {
        places.withLock { places in
            let rest = places.slots.rests(server.number, on: loop, isShareable: isShareable)
            if case .given(let id) = rest { places.ports[loop]?(.given(id, server: server.number)) }
            return rest
        }
    }

    func leftIdle(_ server: ServerState, on loop: Int) {
        places.withLock { $0.slots.leftIdle(server.number, on: loop) }
    }

    func wait(
        for wanted: [ServerState],
        refusing refused: [ServerState],
        flow: Int,
        loop: Int
    ) -> ConnectionSlots.Entry {
        places.withLock { places in
            let entry = places.slots.wait(
                wanted: wanted.map(\.number),
                refused: refused.map(\.number),
                flow: flow,
                loop: loop
            )
            if case .waits(_, let idle, let displaced) = entry {
                for one in idle { places.ports[one.loop]?(.yield(server: one.server)) }
                if let displaced { places.ports[displaced.loop]?(.displaced(displaced.id)) }
            }
            return entry
        }
    }

    func leave(_ id: UInt64, flow: Int) { places.withLock { _ = $0.slots.leave(id, flow: flow) } }

    /// The port for calls to an event loop; `nil` for none.
    func call(_ loop: Int, at port: Port?) { places.withLock { $0.ports[loop] = port } }

    /// Offers places that were not announced: those at servers that came back, and at servers
    /// without a limit. Where no server can be used at all, the waiters are notified.
    func look(now: UInt64) {
        guard waiting > 0 else { return }
        let servers = servers.withLock { $0 }
        let offered = servers.filter { isOffered($0, now: now) }
        places.withLock { places in
            let isOpen = offered.contains { places.slots.connections(of: $0.number) == nil }
            guard !isOpen, !offered.isEmpty else {
                for waiter in places.slots.wakeAll() {
                    places.ports[waiter.loop]?(.again(waiter.id))
                }
                return
            }
            for server in offered {
                while let waiter = places.slots.offer(server.number) {
                    places.ports[waiter.loop]?(.granted(waiter.id, server: server.number))
                }
            }
        }
    }

    /// Whether a request may go to a server: it is well, or no other is better.
    private func isOffered(_ server: ServerState, now: UInt64) -> Bool {
        guard !server.isClosed else { return false }
        if case .fit = server.standing(now: now) { return true }
        return servers.withLock { servers in
            !servers.contains { other in
                if case .fit = other.standing(now: now) { !other.isClosed } else { false }
            }
        }
    }
}

/// The states of origins and servers. They outlive reloads: the same address keeps its state.
package final class OriginRegistry: Sendable {
    private struct States {
        var origins: [String: OriginState] = [:]
        var servers: [Key: ServerState] = [:]
        /// Names of the servers that operators drain, at any address.
        var drained: Set<String> = []
    }

    private struct Key: Hashable {
        let origin: String
        let server: String
        let address: [UInt8]
    }

    private let states = Mutex(States())

    package init() {}

    package func origin(_ name: String) -> OriginState {
        states.withLock { states in
            if let known = states.origins[name] { return known }
            let state = OriginState()
            states.origins[name] = state
            return state
        }
    }

    package func server(
        _ server: String,
        at address: SocketAddress,
        of origin: String
    ) -> ServerState {
        let key = Key(origin: origin, server: server, address: address.bytes)
        return states.withLock { states in
            if let known = states.servers[key] { return known }
            let state = ServerState()
            if states.drained.contains(server) { state.drain() }
            states.servers[key] = state
            return state
        }
    }

    /// The servers that operators drain, sorted.
    package var drained: [String] { states.withLock { $0.drained.sorted() } }

    /// Drains a server, also at addresses that it gets later.
    package func drain(_ server: String) {
        _ = states.withLock { $0.drained.insert(server) }
    }

    package func undrain(_ server: String) {
        _ = states.withLock { $0.drained.remove(server) }
    }

    /// Keeps the states of the served origins, and forgets the rest.
    ///
    /// - names: of all servers of the configuration, also of those that have no address now.
    package func keep(_ origins: [OriginSettings], servers names: Set<String>) {
        states.withLock { states in
            let served = Set(origins.map(\.name))
            states.origins = states.origins.filter { served.contains($0.key) }
            states.drained.formIntersection(names)
            let used = Set(origins.flatMap(\.servers).map { ObjectIdentifier($0.state) })
            states.servers = states.servers.filter { used.contains(ObjectIdentifier($0.value)) }
        }
        for origin in origins { origin.take() }
    }
}
