import ConfigurationReading
import Cryptography
import EventLoops
import Glibc
import HTTPWire

/// Sends the lines of a log to a syslog daemon, each as a datagram.
///
/// It waits for a slow daemon, at most a second for each line. Lines that the daemon does not take,
/// and lines without a daemon, are lost.
final class SyslogLink: Sendable {
    private let sender: DatagramSender
    private let form: SyslogForm

    init(_ address: ServerAddress) throws(GatewayError) {
        let place: SocketAddress?
        switch address {
        case .unix(let path):
            place = SocketAddress(unixPath: path)
            form = .local
        case .ip(let ip, let port):
            place = SocketAddress(ip: ip.text, port: port)
            form = .network(host: Self.hostName)
        case .name:
            place = nil
            form = .local
        }
        guard let place else {
            throw GatewayError(
                "log.access is syslog:\(address.text), which is no address",
                hint: "Use syslog, syslog:unix:/PATH or syslog:ADDRESS:PORT."
            )
        }
        do throws(SocketError) {
            sender = try DatagramSender(to: place)
        } catch {
            throw GatewayError("syslog: \(error)", hint: "Raise the limit of descriptors.")
        }
    }

    /// Sends lines, and returns the number of lost ones.
    func send(_ lines: [ArraySlice<UInt8>]) -> UInt64 {
        let header = form.header(at: UnixTime(seconds: Int64(time(nil))), process: getpid())
        return lines.reduce(0) { $0 + (sender.send(header + $1) ? 0 : 1) }
    }

    /// This host's name; empty when it has none.
    static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// The text before a line in a datagram.
enum SyslogForm: Equatable {
    /// The form of syslog(3), which journald, rsyslog and syslog-ng expect on their Unix socket.
    case local
    /// RFC 5424 §6, for UDP (RFC 5426).
    case network(host: String)

    /// The facility `daemon` (3) with the severity `informational` (6): RFC 5424 §6.2.1.
    private static let priority = 3 * 8 + 6
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    func header(at now: UnixTime, process: Int32) -> [UInt8] {
        switch self {
        case .local:
            var moment = time_t(now.seconds)
            var parts = tm()
            localtime_r(&moment, &parts)
            let month = Self.months[max(0, min(11, Int(parts.tm_mon)))]
            let day = parts.tm_mday < 10 ? " \(parts.tm_mday)" : "\(parts.tm_mday)"
            let time = [parts.tm_hour, parts.tm_min, parts.tm_sec].map {
                $0 < 10 ? "0\($0)" : "\($0)"
            }
            let clock = time.joined(separator: ":")
            return Array("<\(Self.priority)>\(month) \(day) \(clock) portcullis[\(process)]: ".utf8)
        case .network(let host):
            // 1…255 visible characters, or a hyphen (RFC 5424 §6.2.4).
            let isNamed = !host.isEmpty && host.utf8.allSatisfy { (33...126).contains($0) }
            let name = isNamed ? host : "-"
            let text = "<\(Self.priority)>1 \(now.iso8601) \(name) portcullis \(process) access - "
            return Array(text.utf8)
        }
    }
}
