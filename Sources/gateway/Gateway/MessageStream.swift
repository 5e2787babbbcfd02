import ConfigurationReading
import Logging

/// The gateway's own messages on their way to standard error. Code that logs never waits.
struct MessageStream: TextOutputStream, Sendable {
    let writer: LogWriter

    func write(_ text: String) { writer.write(Array(text.utf8)) }

    /// A logger whose lines are those of swift-log's own handler.
    func logger(_ level: LogSettings.Level) -> Logger {
        var logger = Logger(label: "portcullis") { StreamLogHandler(label: $0, stream: self) }
        logger.logLevel = Logger.Level(level)
        return logger
    }
}
