import ArgumentParser
import ConfigurationReading
import Cryptography
import Gateway
import Glibc

/// The output of commands.
///
/// A reader may stop before the end, as in `portcullis check FILE | head`. That is no fault and is
/// not reported. A command whose status is its answer (check, test, verify) still ends with that
/// status. A command that prints a list ends at once with 1, since the list is incomplete. A full
/// disk is reported.
enum StandardOutput {
    /// Writes a text, as ``TerminalText`` shows it.
    ///
    /// - Returns: whether all of it was written.
    @discardableResult
    static func write(_ text: String) -> Bool {
        let bytes = TerminalText(text).bytes
        var written = 0
        while written < bytes.count {
            // The pointer lives for the call; the rest is not empty.
            let count = bytes.withUnsafeBytes {
                Glibc.write(1, $0.baseAddress.map { $0 + written }, $0.count - written)
            }
            if count > 0 {
                written += count
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                // Another process has made the shared pipe or terminal non-blocking.
                var room = pollfd(fd: 1, events: Int16(POLLOUT), revents: 0)
                _ = poll(&room, 1, -1)
            case EPIPE: return false
            default:
                let reason = String(cString: strerror(errno))
                StandardError.write("portcullis: standard output can't be written: \(reason)")
                return false
            }
        }
        return true
    }
}

/// Messages for people.
enum StandardError {
    /// The time that a start waits for a reader of its messages: 2 s. The pipe may be full, and its
    /// reader blocked.
    static let startPatienceMillis: Int32 = 2_000
    /// A ready pipe accepts this number of bytes at once (pipe(7), PIPE_BUF).
    private static let pieceBytes = 4_096

    /// Writes a text and ends the line. Drops the rest when no byte is read for this number of
    /// milliseconds; -1 waits without a limit, as usual for commands that people run.
    ///
    /// In the journal, lines are errors or warnings.
    static func write(_ text: String, patienceMillis: Int32 = -1) {
        let ended = text.hasSuffix("\n") ? text : text + "\n"
        let bytes = TerminalText(Journal.text(ended, as: .error, on: 2)).bytes
        var written = 0
        while written < bytes.count {
            var room = pollfd(fd: 2, events: Int16(POLLOUT), revents: 0)
            let ready = poll(&room, 1, patienceMillis)
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { return }
            let piece = bytes[written..<min(written + pieceBytes, bytes.count)]
            let count = piece.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
            // A failure here can't be reported anywhere.
            guard count > 0 || errno == EINTR || errno == EAGAIN else { return }
            written += max(count, 0)
        }
    }
}

/// A question at the terminal, before a command does what may do harm.
enum Confirmation {
    /// Whether a person types yes. Without a terminal the answer is no, and the message says so.
    ///
    /// - otherwise: why nothing has changed without a terminal, and the next step.
    static func isGiven(otherwise: () -> String) -> Bool {
        guard isatty(0) == 1, isatty(2) == 1 else {
            StandardError.write("portcullis: nothing has changed, since \(otherwise())")
            return false
        }
        StandardError.write("Do it all the same? Type yes:")
        let isGiven = readLine() == "yes"
        if !isGiven { StandardError.write("portcullis: nothing has changed") }
        return isGiven
    }
}

/// The gateway that a command asks.
struct AskedGateway: Sendable {
    /// Empty without an admin listener.
    let listeners: [AdminListener]
    /// `nil` where the file is invalid now.
    let configuration: GatewayConfiguration?
}

/// A configuration that a command requires.
///
/// Its warnings are those of `check`, `serve`, `doctor` and a reload: a command with another answer
/// does not repeat them.
enum LoadedFile {
    /// Loads it; prints every error and exits 1 when it is invalid.
    static func configuration(_ file: String) throws -> GatewayConfiguration {
        try taken(ConfigurationLoader.load(file), file)
    }

    /// The configuration of a load; prints every error and exits 1 when it is invalid.
    static func taken(_ loaded: LoadedConfiguration, _ file: String) throws -> GatewayConfiguration
    {
        try taken(loaded.configuration, file: file, problems: loaded.problems)
    }

    /// Loads what a command needs that asks a running gateway. Prints every error; exits 1 when the
    /// file does not say where the gateway is asked.
    static func gateway(_ file: String) throws -> AskedGateway {
        let loaded = ConfigurationLoader.load(file)
        let listeners = loaded.configuration?.admin ?? ConfigurationLoader.adminListeners(file)
        if loaded.configuration == nil, !listeners.isEmpty {
            for problem in loaded.errors { StandardError.write(problem.text) }
            let places = listeners.map(\.address.text).joined(separator: ", ")
            StandardError.write(
                "\(file): invalid as it is now; the gateway at \(places) is asked all the same"
            )
            return AskedGateway(listeners: listeners, configuration: nil)
        }
        guard let configuration = loaded.configuration else {
            for problem in loaded.errors { StandardError.write(problem.text) }
            StandardError.write(
                "\(file): refused, and it does not say where the gateway is asked; next: name its "
                    + "admin listener in the place of the file, as in --admin "
                    + "unix:/run/portcullis/admin.sock; `portcullis check \(file)` says more"
            )
            throw ExitStatus.no
        }
        return AskedGateway(listeners: listeners, configuration: configuration)
    }

    /// Loads its store and its apps, in the same way.
    static func store(_ file: String) throws -> KeySettings {
        let loaded = ConfigurationLoader.loadStore(file)
        return try taken(loaded.settings, file: file, problems: loaded.problems)
    }

    private static func taken<Value>(
        _ value: Value?,
        file: String,
        problems: [Problem]
    ) throws -> Value {
        guard let value else {
            for problem in problems where problem.severity == .error {
                StandardError.write(problem.text)
            }
            StandardError.write("\(file): refused; `portcullis check \(file)` says more")
            throw ExitStatus.no
        }
        return value
    }
}

extension UnixTime {
    /// The machine's wall clock.
    static var current: UnixTime { UnixTime(seconds: Int64(time(nil))) }
}
