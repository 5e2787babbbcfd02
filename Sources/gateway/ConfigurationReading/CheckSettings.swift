/// How servers are asked whether they are well: `check`.
package struct CheckSettings: Hashable, Sendable {
    /// `path`, mandatory.
    package var path: String
    /// `host`: default the server as it is written.
    package var host: String?
    /// `status`: of a server that is well. Default 200-399 (HAProxy's).
    package var statuses = 200...399
    /// `interval`: default 5s.
    package var interval: Duration = .seconds(5)
    /// `timeout`: for a whole check. Default 2s.
    package var timeout: Duration = .seconds(2)
    /// `healthy`: checks one after another that bring a server back. Default 2.
    package var healthy = 2
    /// `unhealthy`: checks one after another that take it out. Default 3.
    package var unhealthy = 3

    init?(_ node: SourceNode, _ keyPath: String, log: ProblemLog) {
        let keys = ["path", "host", "status", "interval", "timeout", "healthy", "unhealthy"]
        guard let reader = MappingReader(node, keyPath, keys: keys, log: log) else { return nil }
        reader.require("path", use: "path: /health")
        let path: Located<String>? = reader.value(
            "path",
            use: "a path and maybe a query, such as /health"
        ) { text in
            let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x23 }
            return text.hasPrefix("/") && isPlain ? text : nil
        }
        self.path = path?.value ?? "/"
        let host: Located<String>? = reader.value(
            "host",
            use: "a host name, with a port or without",
            ConfigurationDraft.hostName
        )
        self.host = host?.value
        let use = "a status or two with a hyphen, such as 200 or 200-399"
        let statuses: Located<ClosedRange<Int>>? = reader.value("status", use: use, Self.statuses)
        if let statuses { self.statuses = statuses.value }
        let range = Duration.milliseconds(10)...Duration.seconds(3600)
        if let value = reader.duration("interval", in: range) { interval = value.value }
        if let value = reader.duration("timeout", in: range) { timeout = value.value }
        if let value = reader.integer("healthy", in: 1...100) { healthy = value.value }
        if let value = reader.integer("unhealthy", in: 1...100) { unhealthy = value.value }
        if path == nil { return nil }
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
