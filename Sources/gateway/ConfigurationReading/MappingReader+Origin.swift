// How an origin's servers are written.
extension MappingReader {
    /// The keys of an origin that say how its servers share requests.
    static let balancingKeys = [
        "balance", "slow_start", "eject", "check", "resolve_interval", "total_timeout", "retries",
        "queue",
    ]

    /// `servers`: addresses, or mappings with an address.
    func servers() -> [Located<ServerSettings>] {
        let use = "host:port, [v6]:port or unix:/path; each server once"
        guard let nodes = list("servers", of: use) else { return [] }
        var seen: Set<ServerAddress> = []
        var servers: [Located<ServerSettings>] = []
        for (node, keyPath) in nodes {
            guard let server = server(node, keyPath, use: use) else { continue }
            guard seen.insert(server.value.address).inserted else {
                var found = SourceNode.quoted(server.value.address.text)
                if case .text = node.content { found = node.found }
                log.error(node.place, keyPath, found: "\(found) again", use: "it once")
                continue
            }
            servers.append(server)
        }
        if let first = servers.first, servers.allSatisfy({ $0.value.isBackup }) {
            log.error(
                first.place,
                path("servers"),
                found: "backups alone",
                use: "at least one server that is no backup"
            )
        }
        return servers
    }

    private func server(
        _ node: SourceNode,
        _ keyPath: String,
        use: String
    ) -> Located<ServerSettings>? {
        guard case .mapping = node.content else {
            return value(of: node, keyPath, use: use) { text in
                ServerAddress(text: text, allowsPortZero: false).map { ServerSettings(address: $0) }
            }
        }
        let keys = ["address", "weight", "backup", "max_connections"]
        guard let inner = MappingReader(node, keyPath, keys: keys, log: log) else { return nil }
        inner.require("address", use: "address: 10.0.0.5:8080")
        let address = inner.value("address", use: use) { text in
            ServerAddress(text: text, allowsPortZero: false)
        }
        let weight = inner.integer("weight", in: ServerSettings.weights)
        let most = inner.integer("max_connections", in: ServerSettings.connections)
        let backup = inner.flag("backup")
        guard let address else { return nil }
        var settings = ServerSettings(address: address.value)
        if let weight { settings.weight = weight.value }
        if let most { settings.connectionsMax = most.value }
        if let backup { settings.isBackup = backup.value }
        return Located(value: settings, place: node.place, keyPath: keyPath)
    }

    /// What the origin's mapping says of the balance.
    func balancing() -> BalancingSettings {
        var settings = BalancingSettings()
        if let balance = word("balance", BalancingSettings.Balance.self) {
            settings.balance = balance.value
        }
        if let time = duration("slow_start", in: .zero...Duration.seconds(3600)) {
            settings.slowStart = time.value
        }
        if let time = duration("resolve_interval", in: .seconds(1)...Duration.seconds(86_400)) {
            settings.resolveInterval = time.value
        }
        if let time = duration("total_timeout", in: .zero...TimeoutSettings.range.upperBound) {
            settings.totalTimeout = time.value
        }
        settings.retries = RetrySettings(node("retries"), path("retries"), log: log)
        settings.queue = QueueSettings(node("queue"), path("queue"), log: log)
        settings.ejection = EjectionSettings(node("eject"), path("eject"), log: log)
        settings.check = node("check").flatMap { CheckSettings($0, path("check"), log: log) }
        return settings
    }
}
