import Logging

/// The gateway's own messages on their way to standard error. Code that logs never waits.
struct MessageStream: TextOutputStream, Sendable {
    let writer: LogWriter

    func write(_ text: String) { writer.write(Array(text.utf8)) }

    /// A logger whose lines are those of swift-log's own handler.
    var logger: Logger {
        Logger(label: "portcullis") { StreamLogHandler(label: $0, stream: self) }
    }
}
