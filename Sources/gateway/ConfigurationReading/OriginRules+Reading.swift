import Proxy

// How an origin's servers are written.
extension MappingReader {
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

    /// What the origin's mapping says of the use of its servers.
    func originRules(_ timeouts: Timeouts) -> OriginRules {
        var rules = OriginRules()
        rules.connectTimeout = timeouts.connect
        rules.firstByteTimeout = timeouts.firstByte
        for row in OriginRules.rows { row.read(self, into: &rules) }
        if let balance = word("balance", Balance.self) { rules.balance = balance.value }
        rules.retries = RetryRule(node("retries"), path("retries"), log: log)
        SettingRow.read(
            QueueRule.rows,
            of: node("queue"),
            path("queue"),
            into: &rules.queue,
            log: log
        )
        rules.ejection = Ejection(node("eject"), path("eject"), log: log)
        rules.check = node("check").flatMap { ServerCheck($0, path("check"), log: log) }
        return rules
    }

    /// Refuses what has no effect or no meaning with an origin's `http2`.
    func checkHTTP2(_ http2: ListenSettings.HTTP2, _ preface: Located<OriginPreface>?) {
        switch http2 {
        case .off:
            if case .mapping(let members)? = node("check")?.content,
                let service = members.first(where: { $0.key == "grpc" })
            {
                log.error(
                    service.place,
                    path("check.grpc"),
                    found: "it without http2",
                    use: "http2: on"
                )
            }
            for key in ["http2_streams", "http2_connections"] {
                guard let node = node(key) else { continue }
                log.error(node.place, path(key), found: "it without http2", use: "http2: on")
            }
        case .on:
            guard let preface, preface.value != .none else { return }
            log.error(
                preface,
                found: "a PROXY header with http2: on, whose connections carry many clients",
                use: "one of both"
            )
        }
    }

    /// `0%` to `100%`, without decimals.
    fileprivate func wholePercent(_ key: String) -> Int? {
        let share: Located<Int>? = value(key, use: "a whole percentage, 0%…100%") { text in
            guard text.hasSuffix("%") else { return nil }
            return Self.digits(text.dropLast()).flatMap { (0...100).contains($0) ? $0 : nil }
        }
        return share?.value
    }
}

extension OriginRules {
    /// The keys of an origin that say how its servers share requests.
    static let keys = [
        "balance", "slow_start", "eject", "check", "resolve_interval", "total_timeout", "retries",
        "queue", "http2_streams", "http2_connections",
    ]

    static let rows: [SettingRow<Self>] = [
        SettingRow("slow_start", .milliseconds(\.slowStart, .zero ... .seconds(3600))),
        SettingRow(
            "resolve_interval",
            .milliseconds(\.resolveInterval, .seconds(1) ... .seconds(86_400))
        ),
        SettingRow(
            "total_timeout",
            .milliseconds(\.totalTimeout, .zero...Timeouts.range.upperBound)
        ),
        SettingRow("http2_streams", .count(\.http2Streams, 1...1_000)),
        SettingRow("http2_connections", .count(\.http2Connections, 1...100)),
        SettingRow("connect_timeout", .milliseconds(\.connectTimeout, Timeouts.range)),
        SettingRow("first_byte_timeout", .milliseconds(\.firstByteTimeout, Timeouts.range)),
    ]
}

extension QueueRule {
    static let rows: [SettingRow<Self>] = [
        SettingRow("max", .count(\.max, 0...10_000)),
        SettingRow("timeout", .milliseconds(\.timeout, Timeouts.range)),
    ]
}

extension RetryRule {
    fileprivate init(_ node: SourceNode?, _ keyPath: String, log: ProblemLog) {
        self.init()
        let keys = ["max", "budget", "minimum"]
        guard let node, let reader = MappingReader(node, keyPath, keys: keys, log: log) else {
            return
        }
        if let value = reader.integer("max", in: 0...10) { max = value.value }
        if let value = reader.wholePercent("budget") { budget = value }
        if let value = reader.integer("minimum", in: 0...10_000) { minimum = value.value }
    }
}

extension Ejection {
    private static let rows: [SettingRow<Self>] = [
        SettingRow("failures", .count(\.failures, 0...1000)),
        SettingRow("time", .milliseconds(\.time, Timeouts.range)),
        SettingRow("time_max", .milliseconds(\.timeMax, Timeouts.range)),
    ]

    fileprivate init(_ node: SourceNode?, _ keyPath: String, log: ProblemLog) {
        self.init()
        let keys = ["failures", "statuses", "time", "time_max", "share"]
        guard let node, let reader = MappingReader(node, keyPath, keys: keys, log: log) else {
            return
        }
        for row in Self.rows { row.read(reader, into: &self) }
        let use = "statuses from 400 to 599"
        let read: [Located<Int>]? = reader.list("statuses", of: use) { text in
            MappingReader.digits(text).flatMap { (400...599).contains($0) ? $0 : nil }
        }
        if let read { statuses = read.map(\.value) }
        if let value = reader.wholePercent("share") { share = value }
        guard timeMax < time else { return }
        let (longest, first) = (Duration.milliseconds(timeMax), Duration.milliseconds(time))
        reader.error(
            "time_max",
            found: "\(longest.settingText), which is less than time, \(first.settingText)",
            use: "at least the time of the first ejection"
        )
    }
}

// How an origin's `check` is written.
extension ServerCheck {
    private static let range = Duration.milliseconds(10)...Duration.seconds(3600)

    private static let rows: [SettingRow<Self>] = [
        SettingRow("interval", .milliseconds(\.interval, range)),
        SettingRow("timeout", .milliseconds(\.timeout, range)),
        SettingRow("healthy", .count(\.healthy, 1...100)),
        SettingRow("unhealthy", .count(\.unhealthy, 1...100)),
    ]

    init?(_ node: SourceNode, _ keyPath: String, log: ProblemLog) {
        self.init()
        let keys = [
            "path", "grpc", "host", "status", "interval", "timeout", "healthy", "unhealthy",
        ]
        guard let reader = MappingReader(node, keyPath, keys: keys, log: log) else { return nil }
        let service: Located<String>? = reader.value(
            "grpc",
            use: "server, or the name of a gRPC service"
        ) { text in
            let isName = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
            return (1...ServerCheck.serviceMax).contains(text.utf8.count) && isName ? text : nil
        }
        grpc = service?.value
        if grpc == nil { reader.require("path", use: "path: /health") }
        for key in ["path", "status"] where grpc != nil {
            guard let node = reader.node(key) else { continue }
            log.error(node.place, reader.path(key), found: "it and grpc", use: "one of both")
        }
        let path: Located<String>? = reader.value(
            "path",
            use: "a path and maybe a query, such as /health"
        ) { text in
            let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x23 }
            return text.hasPrefix("/") && isPlain ? text : nil
        }
        let host: Located<String>? = reader.value(
            "host",
            use: "a host name, with a port or without",
            ConfigurationDraft.hostName
        )
        self.host = host?.value
        let use = "a status or two with a hyphen, such as 200 or 200-399"
        let statuses: Located<ClosedRange<Int>>? = reader.value("status", use: use, Self.statuses)
        if let statuses { self.statuses = statuses.value }
        for row in Self.rows { row.read(reader, into: &self) }
        guard path != nil || grpc != nil else { return nil }
        if let path { self.path = path.value }
    }

    private static func statuses(_ text: String) -> ClosedRange<Int>? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { MappingReader.digits($0) }
        guard (1...2).contains(parts.count), numbers.count == parts.count,
            let first = numbers.first, let last = numbers.last,
            first <= last, first >= 200, last <= 599
        else { return nil }
        return first...last
    }
}
