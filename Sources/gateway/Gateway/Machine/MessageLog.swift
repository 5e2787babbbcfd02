import ConfigurationReading
import Logging
import Synchronization

/// The gateway's own messages on their way to standard error. Code that logs never waits.
struct MessageStream: TextOutputStream, Sendable {
    let writer: LogWriter
    /// In the journal, the priority of the lines; elsewhere `nil`.
    var priority: LogPriority?

    func write(_ text: String) {
        let lines = Array(text.utf8)
        writer.write(priority?.mark(lines) ?? lines)
    }

    /// A logger whose lines are those of swift-log's own handler.
    func logger(_ level: LogSettings.Level) -> Logger { logger(level, isJournal: false) }

    /// The same for the journal: each line with its priority.
    func journalLogger(_ level: LogSettings.Level) -> Logger { logger(level, isJournal: true) }

    private func logger(_ level: LogSettings.Level, isJournal: Bool) -> Logger {
        let level = MessageLevel(Logger.Level(level))
        return Logger(label: "portcullis") { label in
            MessageLog(label: label, writer: writer, isJournal: isJournal, level: level)
        }
    }
}

/// The level in force.
private final class MessageLevel: Sendable {
    private let level: Mutex<Logger.Level>

    init(_ level: Logger.Level) { self.level = Mutex(level) }

    var inForce: Logger.Level {
        get { level.withLock { $0 } }
        set { level.withLock { $0 = newValue } }
    }
}

/// The handler of the logger of the gateway's own messages.
///
/// All copies of the logger have one level. Parts keep a copy for as long as the process lives, and
/// a reload changes the level for all of them. A handler may do so (swift-log, `LogHandler`,
/// "Special cases").
private struct MessageLog: LogHandler {
    private let label: String
    private let writer: LogWriter
    /// Whether each line has its priority.
    private let isJournal: Bool
    private let level: MessageLevel
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    init(label: String, writer: LogWriter, isJournal: Bool, level: MessageLevel) {
        (self.label, self.writer) = (label, writer)
        (self.isJournal, self.level) = (isJournal, level)
    }

    var logLevel: Logger.Level {
        get { level.inForce }
        set { level.inForce = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let priority = isJournal ? LogPriority(event.level) : nil
        var handler = StreamLogHandler(
            label: label,
            stream: MessageStream(writer: writer, priority: priority),
            metadataProvider: metadataProvider
        )
        handler.metadata = metadata
        handler.log(event: event)
    }
}
