import Synchronization

/// What all lanes know of an origin, also after a reload.
package final class OriginState: Sendable {
    /// Its servers now.
    private let servers = Mutex<[ServerState]>([])

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
