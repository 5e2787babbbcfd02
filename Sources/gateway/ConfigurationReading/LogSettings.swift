package import Proxy
package import Rules

/// The contents and the targets of the logs.
package struct LogSettings: Hashable, Sendable {
    package enum Access: Hashable, Sendable {
        /// Standard output. The default.
        case on
        case off
        /// A file to which lines are appended.
        case file(String)
        /// A syslog daemon: a datagram for each line, to a Unix socket or to an IP address.
        case syslog(ServerAddress)

        /// The socket of a host's syslog daemon.
        private static let device = ServerAddress.unix("/dev/log")

        /// Reads `syslog`, `syslog:unix:/run/log.sock` or `syslog:10.0.0.9:514`; names are not
        /// looked up.
        init?(syslog text: String) {
            guard text != "syslog" else {
                self = .syslog(Self.device)
                return
            }
            let place = text.dropFirst("syslog:".count)
            switch ServerAddress(text: String(place), allowsPortZero: false) {
            case .unix(let path): self = .syslog(.unix(path))
            case .ip(let address, let port): self = .syslog(.ip(address, port: port))
            case .name, nil: return nil
            }
        }
    }

    /// The names of swift-log.
    package enum Level: String, CaseIterable, Sendable {
        case trace, debug, info, notice, warning, error, critical
    }

    /// `access`: one line for each request.
    package var access = Access.on
    /// `format`: of the access log. Default json.
    package var format = AccessLogRule.Form.json
    /// `time`: in lines of JSON. Default ms.
    package var time = AccessLogRule.Time.milliseconds
    /// `sample`: the share of admitted requests that have a line. Default 100%.
    package var sample = Share.whole
    /// `address_refusals`: lines a second about refused requests of one address, on each event
    /// loop; ten times as many at once. Further ones are omitted and counted. Default 100/s,
    /// 1/s…1000000/s or `off`.
    package var addressRefusals: Int? = 100
    /// `level`: the level of the gateway's own messages, on standard error. Default info.
    package var level = Level.info

    package init() {}

    private static let keys = ["access", "format", "time", "sample", "address_refusals", "level"]

    init(_ node: SourceNode?, folder: String, log: ProblemLog) {
        self.init()
        guard let node,
            let reader = MappingReader(node, "log", keys: Self.keys, log: log)
        else { return }
        let access = reader.value(
            "access",
            use: "on | off | a file's path with a slash | syslog | syslog:unix:/PATH | "
                + "syslog:ADDRESS:PORT",
            words: ["on", "off", "syslog"]
        ) { text -> Access? in
            switch text {
            case "on": .on
            case "off": .off
            case let text where text == "syslog" || text.hasPrefix("syslog:"): Access(syslog: text)
            default: text.contains("/") ? .file(FilePath.joined(folder, text)) : nil
            }
        }
        if let access { self.access = access.value }
        if let format = reader.word("format", AccessLogRule.Form.self) {
            self.format = format.value
        }
        if let time = reader.word("time", AccessLogRule.Time.self) { self.time = time.value }
        let sample = reader.value("sample", use: "a percentage, 0%…100%") { Share(percent: $0) }
        if let sample { self.sample = sample.value }
        if let refusals = reader.countOrOff("address_refusals", unit: "/s") {
            addressRefusals = refusals.value
        }
        if let level = reader.word("level", Level.self) { self.level = level.value }
    }
}
