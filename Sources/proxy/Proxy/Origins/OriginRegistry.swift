package import EventLoops
import Synchronization

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
