package import Proxy
import Rules

/// The contents and the targets of the logs.
package struct LogSettings: Hashable, Sendable, Declared {
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

        /// As a file writes it.
        var text: String {
            switch self {
            case .on: "on"
            case .off: "off"
            case .file(let path): path
            case .syslog(Self.device): "syslog"
            case .syslog(let place): "syslog:\(place.text)"
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

    package static let keys = Keys<Self> {
        Key("access", \.access, access).means("Where the line for each request goes.")
        Key("format", \.lines.form, .word)
            .means(
                "The form of a line; combined is that of Apache and nginx, and combined-times has "
                    + "times after it."
            )
        Key("time", \.lines.time, .word)
            .means("In JSON: milliseconds since 1970 in time_ms, or ISO 8601 in time.")
        Key("sample", \.lines.sample, sample)
            .means("The share of the admitted requests that have a line. All others have one.")
        Key("address_refusals", \.lines.addressRefusals, .orOff(unit: "/s"))
            .means("Lines about refused requests of one address, on each event loop.")
        Key("level", \.level, .word)
            .means("The level of the gateway's own messages, on standard error.")
    }

    private static let sample = ValueForm<Share>(
        { $0.value($1, use: "a percentage, 0%…100%") { Share(percent: $0) } },
        text: { $0.text }
    )

    private static let access = ValueForm<Access>(
        { reader, key in
            reader.takingVariables.value(
                key,
                use: "on | off | a file's path with a slash | syslog | syslog:unix:/PATH | "
                    + "syslog:ADDRESS:PORT",
                words: ["on", "off", "syslog"]
            ) { text -> Access? in
                switch text {
                case "on": return .on
                case "off": return .off
                case _ where text == "syslog" || text.hasPrefix("syslog:"):
                    return Access(syslog: text)
                default:
                    let path = FilePath.joined(reader.log.folder, text)
                    return text.contains("/") ? .file(path) : nil
                }
            }
        },
        text: { $0.text }
    )
}
