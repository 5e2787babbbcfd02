import ConfigurationReading
import Cryptography
import Dispatch
import EventLoops
import Glibc
import HTTPWire
import Synchronization

/// Writes lines of a log on its own queue, so that a slow disk or a full pipe blocks no other work.
///
/// Lines beyond a limit, and lines that can't be written, are dropped, counted and reported: a
/// gateway that blocks for its log would be worse.
package final class LogWriter: Sendable {
    /// The most bytes of the access log that wait to be written.
    static let accessPendingMax = 8 << 20
    /// The most bytes of the gateway's own messages that wait to be written.
    static let messagesPendingMax = 1 << 20
    /// The time that the end of the process waits for unwritten lines.
    static let endPatience = Duration.seconds(2)
    private static let lineFeed = UInt8(ascii: "\n")

    private let descriptor: Int32
    /// The daemon for the lines, instead of a descriptor.
    private let syslog: SyslogLink?
    private let isOwned: Bool
    private let pendingMax: Int
    private let losses: LogLosses
    /// In the journal, the priority of all lines; elsewhere `nil`.
    private let priority: LogPriority?
    private let queue = DispatchQueue(label: "portcullis.log")
    private let pending = Atomic<Int>(0)
    /// The file ends in the middle of a line. Used only on `queue`.
    private let isTorn = Atomic(false)

    /// Writes to standard output or standard error.
    init(
        descriptor: Int32,
        pendingMax: Int,
        losses: LogLosses,
        priority: LogPriority? = nil
    ) {
        self.descriptor = descriptor
        self.pendingMax = pendingMax
        self.losses = losses
        self.priority = priority
        isOwned = false
        syslog = nil
    }

    /// Sends lines of the access log to a syslog daemon.
    init(syslog: SyslogLink, losses: LogLosses) {
        descriptor = -1
        pendingMax = Self.accessPendingMax
        self.losses = losses
        priority = nil
        isOwned = false
        self.syslog = syslog
    }

    /// Appends lines of the access log to a file, made with mode 0640.
    init(file: String, losses: LogLosses) throws(GatewayError) {
        descriptor = Self.open(file)
        pendingMax = Self.accessPendingMax
        self.losses = losses
        priority = nil
        isOwned = true
        syslog = nil
        guard descriptor >= 0 else { throw Self.failure(file) }
    }

    private static func open(_ file: String) -> Int32 {
        // A FIFO without a reader is an error (ENXIO) and no wait; writes wait in `poll`.
        let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK
        return Glibc.open(file, flags, 0o640)
    }

    /// The error by errno of a file that could not be opened.
    private static func failure(_ file: String) -> GatewayError {
        GatewayError(
            "the access log \(file) can't be opened: \(String(cString: strerror(errno)))",
            hint: "Check log.access in the configuration and the folder's permissions."
        )
    }

    /// Changes to the file that has the name now, after all lines so far are written. `ended` is
    /// called on any thread; with an error, lines still go to the previous file.
    func reopen(_ file: String, ended: @escaping @Sendable (GatewayError?) -> Void) {
        queue.async { [self] in
            let opened = Self.open(file)
            guard opened >= 0 else { return ended(Self.failure(file)) }
            // The number stays; its file changes in one step.
            let isReplaced = dup2(opened, descriptor) >= 0
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            let error = isReplaced ? nil : Self.failure(file)
            close(opened)
            if isReplaced { isTorn.store(false, ordering: .relaxed) }
            ended(error)
        }
    }

    deinit { if isOwned { close(descriptor) } }

    /// Takes finished lines, from any thread, and the number of lines dropped before.
    func write(_ lines: [UInt8], dropped: UInt64 = 0) {
        if dropped > 0 { losses.lost(dropped) }
        guard !lines.isEmpty else { return }
        let (_, waiting) = pending.add(lines.count, ordering: .relaxed)
        guard waiting <= pendingMax else {
            pending.subtract(lines.count, ordering: .relaxed)
            return drop(lines[...])
        }
        queue.async { [self] in
            flush(lines)
            pending.subtract(lines.count, ordering: .relaxed)
        }
    }

    /// Waits until all lines so far are written, at most until `deadline`. For the end of the
    /// process, which a reader that takes nothing must not delay.
    func drain(until deadline: DispatchTime) {
        let written = DispatchGroup()
        queue.async(group: written) {}
        _ = written.wait(timeout: deadline)
    }

    private func flush(_ lines: [UInt8]) {
        if let syslog {
            let lost = syslog.send(lines.split(separator: Self.lineFeed))
            return lost > 0 ? losses.lost(lost) : losses.wrote()
        }
        // A cut line must not run into the next one.
        if isTorn.load(ordering: .relaxed) {
            guard write(all: [Self.lineFeed]) == 1 else { return drop(lines[...]) }
            isTorn.store(false, ordering: .relaxed)
        }
        let lines = priority?.mark(lines) ?? lines
        let written = write(all: lines)
        guard written < lines.count else { return losses.wrote() }
        isTorn.store(written > 0 && lines[written - 1] != Self.lineFeed, ordering: .relaxed)
        drop(lines[written...])
    }

    /// Writes as many bytes as possible; returns their number.
    private func write(all bytes: [UInt8]) -> Int {
        var written = 0
        while written < bytes.count {
            // The pointer lives for the call; the rest is not empty.
            let count = bytes.withUnsafeBytes { bytes in
                Glibc.write(descriptor, bytes[written...].baseAddress, bytes.count - written)
            }
            if count > 0 {
                written += count
            } else if errno == EAGAIN {
                // Another process has made the shared pipe or terminal non-blocking.
                var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&room, 1, -1)
            } else if errno != EINTR {
                break
            }
        }
        return written
    }

    private func drop(_ lines: ArraySlice<UInt8>) {
        losses.lost(UInt64(lines.count { $0 == Self.lineFeed }))
    }
}

extension Slice where Base == UnsafeRawBufferPointer {
    /// Where the slice begins; `nil` when the buffer is empty.
    fileprivate var baseAddress: UnsafeRawPointer? { base.baseAddress.map { $0 + startIndex } }
}

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
