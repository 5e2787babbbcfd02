package import HTTPWire

/// One origin: the servers behind a name that rules refer to.
package struct UpstreamSettings: Hashable, Sendable {
    /// The PROXY protocol towards an origin.
    package enum ProxyProtocol: String, CaseIterable, Sendable {
        case off
        case v2
    }

    package let name: String
    /// At least one that is no backup, none twice.
    package let servers: [ServerSettings]
    /// How requests are shared by them.
    package let balancing: BalancingSettings
    /// What is sent as `Host`; `nil` (`client`, the default) for what the client sent.
    package let host: String?
    /// Names, in lower case, of fields that the origin gets although they are deleted by default;
    /// default none.
    package let keptFields: [String]
    /// `proxy_protocol`: what servers get of the client before the first request. Default off.
    package let proxyProtocol: ProxyProtocol
    /// Default `timeouts.connect`.
    package let connectTimeout: Duration
    /// Default `timeouts.first_byte`.
    package let firstByteTimeout: Duration
    /// `tls`: `nil` for an origin that is spoken to in the clear.
    package let tls: OriginTLSSettings?
    /// `paths`: what this origin may do to a path before it chooses what runs. Default: whatever
    /// servers do.
    package let paths: PathReading

    /// The addresses of its servers.
    package var addresses: [ServerAddress] { servers.map(\.address) }
}

/// How the requests for an origin are shared by its servers.
package struct BalancingSettings: Hashable, Sendable {
    package enum Balance: String, CaseIterable, Sendable {
        /// In turn, by weight.
        case roundRobin = "round-robin"
        /// The server with the fewest requests under way, by weight.
        case leastRequests = "least-requests"
        /// The same server for the same key; by the client's address where no key has proven the
        /// request.
        case hashKey = "hash-key"
        /// The same server for the same client address.
        case hashAddress = "hash-address"
    }

    /// `balance`: default round-robin.
    package var balance = Balance.roundRobin
    /// `slow_start`: in which a server that came back gets its share step by step. Default 0s.
    package var slowStart: Duration = .zero
    package var ejection = EjectionSettings()
    /// `resolve_interval`: from one look-up of the servers' names to the next. Default 30s.
    package var resolveInterval: Duration = .seconds(30)
    /// `total_timeout`: from the first connect for a request to the head of its response, over all
    /// tries; 0s (the default) for no limit beyond those of each try.
    package var totalTimeout: Duration = .zero
    package var retries = RetrySettings()
    package var queue = QueueSettings()
    /// `check`: default none.
    package var check: CheckSettings?

    package init() {}
}

/// How requests wait while all servers of an origin have `max_connections`: `queue`.
package struct QueueSettings: Hashable, Sendable {
    /// `max`: the most that wait; 0 for none. Default 1000 (Envoy's `max_pending_requests` is 1024;
    /// HAProxy has no limit).
    package var max = 1_000
    /// `timeout`: how long one waits at most. Default 5s (HAProxy's is that of the connect).
    package var timeout: Duration = .seconds(5)

    package init() {}

    init(_ node: SourceNode?, _ keyPath: String, log: ProblemLog) {
        let keys = ["max", "timeout"]
        guard let node, let reader = MappingReader(node, keyPath, keys: keys, log: log) else {
            return
        }
        if let value = reader.integer("max", in: 0...10_000) { max = value.value }
        if let value = reader.duration("timeout", in: TimeoutSettings.range) {
            timeout = value.value
        }
    }
}

/// When a request is sent to an origin once more: `retries`.
package struct RetrySettings: Hashable, Sendable {
    /// `max`: for one request, beside the connects. Default 0: only a request that broke with an
    /// idle connection is sent once more.
    package var max = 0
    /// `budget`: the most retries under way, in percent of the origin's requests under way. Default
    /// 20 % (Envoy's).
    package var budget = 20
    /// `minimum`: retries under way that are allowed in any case. Default 3 (Envoy's).
    package var minimum = 3

    package init() {}

    init(_ node: SourceNode?, _ keyPath: String, log: ProblemLog) {
        let keys = ["max", "budget", "minimum"]
        guard let node, let reader = MappingReader(node, keyPath, keys: keys, log: log) else {
            return
        }
        if let value = reader.integer("max", in: 0...10) { max = value.value }
        if let value = reader.wholePercent("budget") { budget = value }
        if let value = reader.integer("minimum", in: 0...10_000) { minimum = value.value }
    }
}

/// One server of an origin, as the configuration has it.
package struct ServerSettings: Hashable, Sendable {
    package let address: ServerAddress
    /// `weight`: its share of the requests. Default 1.
    package var weight = 1
    /// `backup`: it gets requests only while no other server is up. Default false.
    package var isBackup = false

    /// `max_connections`: the most connections to it at a time, of all lanes, with the idle ones.
    /// Default 0, for no limit. Others: nginx's `max_conns`, HAProxy's `maxconn`.
    package var connectionsMax = 0

    /// As `check` prints it.
    var text: String {
        let weight = weight == 1 ? "" : " weight \(weight)"
        let most = connectionsMax == 0 ? "" : " max_connections \(connectionsMax)"
        return address.text + weight + most + (isBackup ? " backup" : "")
    }

    static let weights = 1...1000
    static let connections = 0...1_000_000
}

/// When a server whose requests fail is passed over for a while: `eject`.
package struct EjectionSettings: Hashable, Sendable {
    /// `failures`: one after another; 0 for never. Default 5 (Envoy has 5, too).
    package var failures = 5
    /// `statuses`: those that are failures. Default 502, 503, 504.
    package var statuses = [502, 503, 504]
    /// `time`: of the first ejection; it doubles with each one. Default 10s (nginx has 10s).
    package var time: Duration = .seconds(10)
    /// `time_max`: the longest. Default 5m (as Envoy's).
    package var timeMax: Duration = .seconds(300)
    /// `share`: the most servers that are ejected at a time, in percent. Default 50 %.
    package var share = 50

    package init() {}

    init(_ node: SourceNode?, _ keyPath: String, log: ProblemLog) {
        let keys = ["failures", "statuses", "time", "time_max", "share"]
        guard let node, let reader = MappingReader(node, keyPath, keys: keys, log: log) else {
            return
        }
        if let value = reader.integer("failures", in: 0...1000) { failures = value.value }
        let use = "statuses from 400 to 599"
        let read: [Located<Int>]? = reader.list("statuses", of: use) { text in
            MappingReader.digits(text).flatMap { (400...599).contains($0) ? $0 : nil }
        }
        if let read { statuses = read.map(\.value) }
        let range = TimeoutSettings.range
        if let value = reader.duration("time", in: range) { time = value.value }
        if let value = reader.duration("time_max", in: range) { timeMax = value.value }
        if let value = reader.wholePercent("share") { share = value }
        guard timeMax < time else { return }
        log.error(
            reader.place(of: "time_max"),
            reader.path("time_max"),
            found: "\(timeMax.settingText), which is less than time, \(time.settingText)",
            use: "at least the time of the first ejection"
        )
    }
}

extension MappingReader {
    /// `0%` to `100%`, without decimals.
    func wholePercent(_ key: String) -> Int? {
        let share: Located<Int>? = value(key, use: "a whole percentage, 0%…100%") { text in
            guard text.hasSuffix("%") else { return nil }
            return Self.digits(text.dropLast()).flatMap { (0...100).contains($0) ? $0 : nil }
        }
        return share?.value
    }
}

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
