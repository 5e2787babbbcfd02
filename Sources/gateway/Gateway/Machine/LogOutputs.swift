import ConfigurationReading
import Dispatch
import EventLoops
import Glibc
import Logging
import Synchronization

/// The outputs of the gateway's two logs: messages go to standard error, requests to the target of
/// `log.access`.
struct LogOutputs: Sendable {
    let messageLosses = LogLosses()
    let accessLosses = LogLosses()
    /// Refusals beyond `log.address_refusals`, which have no line.
    let refusalLosses = LogLosses()
    /// The gateway's own messages.
    let messages: LogWriter
    /// One for the process: a second writer would break the lines of the first.
    private let standardOutput: LogWriter
    /// Whether messages go to the journal.
    private let isJournal = Journal.owns(2)

    init() {
        messages = LogWriter(
            descriptor: 2,
            pendingMax: LogWriter.messagesPendingMax,
            losses: messageLosses
        )
        standardOutput = LogWriter(
            descriptor: 1,
            pendingMax: LogWriter.accessPendingMax,
            losses: accessLosses,
            priority: Journal.owns(1) ? .info : nil
        )
    }

    /// The logger of the gateway's own messages.
    func logger(_ level: LogSettings.Level) -> Logger {
        let stream = MessageStream(writer: messages)
        return isJournal ? stream.journalLogger(level) : stream.logger(level)
    }

    /// The writer of the access log. A file is opened again, so that a renamed one is released.
    func accessLog(_ access: LogSettings.Access) throws(GatewayError) -> LogWriter? {
        switch access {
        case .on: standardOutput
        case .off: nil
        case .file(let file): try LogWriter(file: file, losses: accessLosses)
        case .syslog(let address): LogWriter(syslog: try SyslogLink(address), losses: accessLosses)
        }
    }

    /// Waits until all lines are written, at most for ``LogWriter/endPatience``.
    func drain(_ accessLog: LogWriter?) {
        let patience = Int(LogWriter.endPatience.milliseconds)
        let deadline = DispatchTime.now() + .milliseconds(patience)
        accessLog?.drain(until: deadline)
        messages.drain(until: deadline)
    }
}

extension Logger.Level {
    init(_ level: LogSettings.Level) {
        switch level {
        case .trace: self = .trace
        case .debug: self = .debug
        case .info: self = .info
        case .notice: self = .notice
        case .warning: self = .warning
        case .error: self = .error
        case .critical: self = .critical
        }
    }
}

/// Standard input, output and error, as the program inherits them.
package enum StandardStreams {
    /// Makes them safe to use. Called first, before any descriptor is opened or written.
    ///
    /// If one is missing, the next opened file or socket would get its number, and then the
    /// messages. So /dev/null replaces it. If a reader is gone, the write fails, and no signal ends
    /// the process.
    package static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest free number: those below are open. Without /dev/null nothing is lost.
            _ = open("/dev/null", O_RDWR)
        }
    }
}

/// The dropped lines of one log: their number, and the function that gets notices.
///
/// A reload that changes the access log's target keeps the count.
final class LogLosses: Sendable {
    private struct State {
        var report = LossReport()
        var tell: @Sendable (LossReport.Notice) -> Void = { _ in }
    }

    private let lines = Atomic<UInt64>(0)
    private let state = Mutex(State())

    /// Lines that were dropped since the start.
    var count: UInt64 { lines.load(ordering: .relaxed) }

    /// Calls `tell`, on any thread, when losses begin and when they are over.
    func watch(_ tell: @escaping @Sendable (LossReport.Notice) -> Void) {
        state.withLock { $0.tell = tell }
    }

    func lost(_ lines: UInt64) {
        self.lines.add(lines, ordering: .relaxed)
        tell { $0.lost(lines, now: MonotonicClock.nanoseconds) }
    }

    /// Lines were written.
    func wrote() { tell { $0.wrote(now: MonotonicClock.nanoseconds) } }

    private func tell(_ change: (inout LossReport) -> LossReport.Notice) {
        let (notice, tell) = state.withLock { (change(&$0.report), $0.tell) }
        if notice != .none { tell(notice) }
    }
}

/// Decides which losses of a log are reported: their beginning and their number. A reader that is a
/// little too slow causes many losses, which are reported together.
struct LossReport {
    enum Notice: Equatable {
        case none
        case began
        case ended(lines: UInt64)
    }

    /// The time without a report after a notice: ten seconds.
    static let quietNanoseconds: UInt64 = 10_000_000_000

    /// Dropped lines that are not reported yet.
    private var untold: UInt64 = 0
    private var isBeginTold = false
    private var toldAt: UInt64?

    mutating func lost(_ lines: UInt64, now: UInt64) -> Notice {
        untold &+= lines
        guard !isBeginTold, !isQuiet(now) else { return .none }
        isBeginTold = true
        toldAt = now
        return .began
    }

    /// Lines were written.
    mutating func wrote(now: UInt64) -> Notice {
        guard untold > 0, isBeginTold || !isQuiet(now) else { return .none }
        defer { untold = 0 }
        isBeginTold = false
        toldAt = now
        return .ended(lines: untold)
    }

    private func isQuiet(_ now: UInt64) -> Bool {
        toldAt.map { now &- $0 < Self.quietNanoseconds } ?? false
    }
}
