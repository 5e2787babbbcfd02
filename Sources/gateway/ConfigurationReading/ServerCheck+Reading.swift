import Proxy

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
