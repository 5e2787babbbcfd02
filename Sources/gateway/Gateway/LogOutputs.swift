import ConfigurationReading
import Dispatch

/// Where the gateway's two logs go: messages to standard error, requests to what `log.access` says.
struct LogOutputs: Sendable {
    let messageLosses = LogLosses()
    let accessLosses = LogLosses()
    /// Refusals beyond `log.address_refusals`, which have no line.
    let refusalLosses = LogLosses()
    /// The gateway's own messages.
    let messages: LogWriter
    /// One for the process: a second writer would tear the lines of the first.
    private let standardOutput: LogWriter

    init() {
        messages = LogWriter(
            descriptor: 2,
            pendingMax: LogWriter.messagesPendingMax,
            losses: messageLosses
        )
        standardOutput = LogWriter(
            descriptor: 1,
            pendingMax: LogWriter.accessPendingMax,
            losses: accessLosses
        )
    }

    /// The writer of the access log; a file is opened anew, so that one that was moved aside is let
    /// go of.
    func accessLog(_ access: LogSettings.Access) throws(GatewayError) -> LogWriter? {
        switch access {
        case .on: standardOutput
        case .off: nil
        case .file(let file): try LogWriter(file: file, losses: accessLosses)
        case .syslog(let address):
            LogWriter(syslog: try SyslogLink(address), losses: accessLosses)
        }
    }

    /// Waits for what is still to be written, for ``LogWriter/endPatience`` at most.
    func drain(_ accessLog: LogWriter?) {
        let patience = Int(LogWriter.endPatience.milliseconds)
        let deadline = DispatchTime.now() + .milliseconds(patience)
        accessLog?.drain(until: deadline)
        messages.drain(until: deadline)
    }
}
