import Dispatch
import HTTPWire
import Lanes
import Logging
import Origins
import Proxy
package import Services

// The origins' servers: what is said of them, and their drain.
extension GatewayServer {
    func originsChanged(_ notice: OriginWatch.Notice) {
        switch notice {
        case .allOut(let origin, let servers):
            let list = servers.joined(separator: ", ")
            log.error(
                """
                no server of the origin \(origin) can serve: \(list); its requests are answered \
                502 or 503; next: see whether the servers run and can be reached
                """
            )
        case .back(let origin): log.notice("the origin \(origin) has a server again")
        }
    }

    /// How the servers stand now.
    var originFacts: [OriginFacts] {
        let now = MonotonicClock.milliseconds
        return origins.map { origin in
            var facts = OriginFacts(
                name: origin.name,
                servers: origin.servers.map { Self.facts($0, of: origin, now) }
            )
            if origin.servers.contains(where: { $0.connectionsMax != nil }) {
                facts.waiting = origin.state.waiting
            }
            return facts
        }
    }

    /// The address that a name stands for; the server as it is written where it has none.
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

extension GatewayServer: OriginDraining {
    package func drain(
        _ server: String,
        _ wish: DrainWish,
        _ done: @escaping @Sendable (Int?) -> Void
    ) {
        control.async { [self] in
            guard case .none = upgrading else { return done(nil) }
            let named = origins.flatMap(\.servers).filter { $0.name == server }
            let now = MonotonicClock.milliseconds
            for server in named {
                switch wish {
                case .drain: server.state.drain()
                case .undrain: server.state.undrain(now: now)
                }
            }
            switch wish {
            case _ where named.isEmpty: break
            case .drain: book.drain(server)
            case .undrain: book.undrain(server)
            }
            if !named.isEmpty { log.notice("the server \(server): \(wish.rawValue), as asked") }
            done(named.count)
        }
    }
}
