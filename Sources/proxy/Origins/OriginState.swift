import Synchronization

/// What all lanes know of an origin, also after a reload.
package final class OriginState: Sendable {
    /// Its servers now.
    private let servers = Mutex<[ServerState]>([])

    package init() {}

    func take(_ servers: [ServerState]) { self.servers.withLock { $0 = servers } }

    /// Ejects a server, unless too many are: the others would get its requests.
    func eject(_ server: ServerState, _ rule: Ejection, now: UInt64) {
        servers.withLock { servers in
            guard !server.isEjected(now: now) else { return }
            let ejected = servers.count { $0.isEjected(now: now) }
            guard rule.allows(ejected: ejected, of: servers.count) else { return }
            server.eject(rule, now: now)
        }
    }
}
