package import Proxy
import Rules

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
    /// Which requests have a line, and its form.
    package var lines = AccessLogRule()
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
        lines = AccessLogRule(reader)
        if let level = reader.word("level", Level.self) { self.level = level.value }
    }
}

extension AccessLogRule {
    fileprivate init(_ reader: MappingReader) {
        self.init()
        if let form = reader.word("format", Form.self) { self.form = form.value }
        if let time = reader.word("time", Time.self) { self.time = time.value }
        let sample = reader.value("sample", use: "a percentage, 0%…100%") { Share(percent: $0) }
        if let sample { self.sample = sample.value }
        if let refusals = reader.countOrOff("address_refusals", unit: "/s") {
            addressRefusals = refusals.value
        }
    }
}
