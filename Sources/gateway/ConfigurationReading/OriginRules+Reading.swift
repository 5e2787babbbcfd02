package import Proxy

// How an origin's servers are written.
extension ServerSettings {
    /// Addresses, or mappings with an address.
    static let list = ValueForm<[ServerSettings]>(
        { reader, key in reader.has(key) ? reader.located(key, all(reader, key)) : nil },
        text: { $0.map(\.text).joined(separator: ", ") }
    )

    private static func all(_ reader: MappingReader, _ key: String) -> [ServerSettings] {
        guard let nodes = reader.list(key, of: addressUse) else { return [] }
        let log = reader.log
        var seen: Set<ServerAddress> = []
        var servers: [ServerSettings] = []
        for (node, keyPath) in nodes {
            guard let server = server(node, at: keyPath, reader) else { continue }
            guard seen.insert(server.address).inserted else {
                var found = SourceNode.quoted(server.address.text)
                if case .text = node.content { found = node.found }
                log.error(node.place, keyPath, found: "\(found) again", use: "it once")
                continue
            }
            servers.append(server)
        }
        if !servers.isEmpty, servers.allSatisfy(\.isBackup) {
            reader.error(
                key,
                found: "backups alone",
                use: "at least one server that is no backup"
            )
        }
        return servers
    }

    private static func server(
        _ node: SourceNode,
        at keyPath: String,
        _ reader: MappingReader
    ) -> ServerSettings? {
        guard case .mapping = node.content else {
            let form = ReadingRecord.Text(use: addressUse)
            return reader.takingVariables.value(of: node, keyPath, as: form, address)
                .map { ServerSettings(address: $0.value) }
        }
        let stated = Stated(node, at: keyPath, over: ServerSettings(), reader.log)
        return stated.flatMap { $0.isComplete ? $0.value : nil }
    }

    private static func address(_ text: String) -> ServerAddress? {
        ServerAddress(text: text, allowsPortZero: false)
    }
}

extension ServerSettings: Declared {
    package static let keys = Keys<Self> {
        Key("address", \.address, addressForm).means("An address, or a name and a port.")
            .mandatory("address: 10.0.0.5:8080")
        Key("weight", \.weight, .count(1...1000)).means("The server's share of the requests.")
        Key("backup", \.isBackup, .flag)
            .means("Whether it gets requests only while no other server is up.")
        Key("max_connections", \.connectionsMax, .count(0...1_000_000))
            .means("The most connections to it, of all event loops; 0 for no limit.")
    }

    fileprivate static let addressUse = "host:port, [v6]:port or unix:/path; each server once"

    private static let addressForm = ValueForm<ServerAddress>(
        { reader, key in
            reader.takingVariables.value(key, use: addressUse, address)
        },
        text: { $0.text }
    )
}

extension OriginRules: Declared {
    package static let keys = Keys<Self> {
        Key("balance", \.balance, .word).means("Which server gets a request.")
        Key("slow_start", \.slowStart, .milliseconds(.zero ... .seconds(3600)))
            .means("In which a server that came back gets its share step by step.")
        Key("eject", \.ejection, .mapping).means("When a server that fails is passed over.")
        Key("check", orNone: \.check, ServerCheck.form)
            .means("Asks each server whether it is well.")
        Key("resolve_interval", \.resolveInterval, .milliseconds(.seconds(1) ... .days(1)))
            .means("From one look-up of names to the next. The shortest of all origins counts.")
        Key("total_timeout", \.totalTimeout, .milliseconds(.zero...Timeouts.range.upperBound))
            .means("From the first connect to the head of the response, over all tries.")
        Key("retries", \.retries, .mapping).means("When a request is sent once more.")
        Key("queue", \.queue, .mapping)
            .means("How requests wait while all servers have max_connections.")
        Key("http2_streams", \.http2Streams, .count(1...1_000))
            .means("Requests at once on an HTTP/2 connection; fewer where the server says so.")
            .because("the least that RFC 9113 recommends")
        Key("http2_connections", \.http2Connections, .count(1...100))
            .means("HTTP/2 connections of an event loop to a server, for each group that shares.")
        Key("connect_timeout", \.connectTimeout, .milliseconds(Timeouts.range))
            .means("For a connection to a server.").because("that of timeouts.connect")
        Key("first_byte_timeout", \.firstByteTimeout, .milliseconds(Timeouts.range))
            .means("From the end of a request to the head of its response.")
            .because("that of timeouts.first_byte")
    }
}

extension QueueRule: Declared {
    package static let keys = Keys<Self> {
        Key("max", \.max, .count(0...10_000)).means("Requests that wait. More are answered 503.")
            .because("close to Envoy's, which is 1024")
        Key("timeout", \.timeout, .milliseconds(Timeouts.range))
            .means("How long one waits; then 503.")
    }
}

extension RetryRule: Declared {
    package static let keys = Keys<Self> {
        Key("max", \.max, .count(0...10))
            .means("How often a request is sent once more when its connection broke.")
        Key("budget", \.budget, .percent)
            .means("The most retries under way, as a share of the origin's requests under way.")
            .because("Envoy's")
        Key("minimum", \.minimum, .count(0...10_000))
            .means("Retries under way that are allowed in any case.").because("Envoy's")
    }
}

extension Ejection: Declared {
    package static let keys = Keys<Self> {
        Key("failures", \.failures, .count(0...1000))
            .means("After this many failed requests in a row; 0 for never.")
        Key("statuses", \.statuses, statusList).means("The statuses by which a request fails.")
        Key("time", \.time, .milliseconds(Timeouts.range))
            .means("For how long. It is doubled with each ejection.")
        Key("time_max", \.timeMax, .milliseconds(Timeouts.range)).means("The longest such time.")
        Key("share", \.share, .percent)
            .means("The most servers of the origin that are ejected at a time.")
    }.checked { reader, ejection in
        guard ejection.timeMax < ejection.time else { return }
        let longest = Duration.milliseconds(ejection.timeMax)
        let first = Duration.milliseconds(ejection.time)
        reader.error(
            "time_max",
            found: "\(longest.settingText), which is less than time, \(first.settingText)",
            use: "at least the time of the first ejection"
        )
    }

    private static let statusList = ValueForm<[Int]>.texts(
        "statuses from 400 to 599",
        text: { "\($0)" }
    ) { text in
        Int(digits: text).flatMap { (400...599).contains($0) ? $0 : nil }
    }
}

// How an origin's `check` is written.
extension ServerCheck: Declared {
    private static let range = Duration.milliseconds(10)...Duration.seconds(3600)

    package static let keys = Keys<Self> {
        Key("path", \.path, ValueForm { $0.value($1, use: pathUse, path) })
            .means("Each server is asked for this path.")
        Key("grpc", orNone: \.grpc, service)
            .means("In the place of path: each server is asked by gRPC's health protocol.")
        Key("host", orNone: \.host, hostForm)
            .means("The Host of the question. Without it, the server's address.")
        Key("status", \.statuses, ValueForm { $0.value($1, use: statusUse, statuses) })
            .means("The statuses of a server that is well.")
        Key("interval", \.interval, .milliseconds(range))
            .means("From one check to the next, a tenth more or less at random.")
        Key("timeout", \.timeout, .milliseconds(range)).means("For a whole check.")
        Key("healthy", \.healthy, .count(1...100))
            .means("Good checks in a row that bring a server back.")
        Key("unhealthy", \.unhealthy, .count(1...100))
            .means("Failed checks in a row that take a server out.")
    }.checked { reader, check in
        if check.grpc == nil { reader.require("path", use: "path: /health") }
        for key in ["path", "status"] where check.grpc != nil && reader.has(key) {
            reader.error(key, found: "it and grpc", use: "one of both")
        }
    }

    private static let service = ValueForm<String>.text("server, or the name of a gRPC service") {
        text in
        let isName = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        return (1...ServerCheck.serviceMax).contains(text.utf8.count) && isName ? text : nil
    }

    private static let pathUse = "a path and maybe a query, such as /health"

    private static func path(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x23 }
        return text.hasPrefix("/") && isPlain ? text : nil
    }

    private static let hostForm = ValueForm<String>.text(
        "a host name, with a port or without",
        TextForm.host
    )

    private static let statusUse = "a status or two with a hyphen, such as 200 or 200-399"

    /// No value, with a problem, where neither a path nor a service can be asked for.
    static let form = ValueForm<ServerCheck>.declared { reader, key in
        let stated = Stated(reader, key, over: ServerCheck())
        guard let stated, stated.located("path", \.path) != nil || stated.value.grpc != nil else {
            return nil
        }
        return reader.located(key, stated.value)
    }

    private static func statuses(_ text: String) -> ClosedRange<Int>? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { Int(digits: $0) }
        guard (1...2).contains(parts.count), numbers.count == parts.count,
            let first = numbers.first, let last = numbers.last,
            first <= last, first >= 200, last <= 599
        else { return nil }
        return first...last
    }
}
