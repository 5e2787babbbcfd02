import Glibc
import Logging

/// The priority of a line in the journal. The raw value is the number that sd-daemon(3) reads at
/// the start of a line, as in `<4>`.
package enum LogPriority: UInt8, Sendable {
    case critical = 2
    case error = 3
    case warning = 4
    /// The gateway's own messages that are no fault. The journal separates them by this from the
    /// access log.
    case notice = 5
    /// The access log.
    case info = 6
    case debug = 7

    init(_ level: Logger.Level) {
        switch level {
        case .critical: self = .critical
        case .error: self = .error
        case .warning: self = .warning
        case .notice, .info: self = .notice
        case .debug, .trace: self = .debug
        }
    }

    var prefix: [UInt8] { Array("<\(rawValue)>".utf8) }

    /// Puts the prefix before each line. journald reads each line of a message alone.
    func mark(_ lines: [UInt8]) -> [UInt8] {
        let (lineFeed, prefix) = (UInt8(ascii: "\n"), prefix)
        var marked: [UInt8] = []
        marked.reserveCapacity(lines.count + lines.count / 16 + prefix.count)
        var rest = lines[...]
        while !rest.isEmpty {
            let end = rest.firstIndex(of: lineFeed).map { $0 + 1 } ?? rest.endIndex
            marked += prefix
            marked += rest[..<end]
            rest = rest[end...]
        }
        return marked
    }
}

/// Standard output and standard error, as far as they are the journal of systemd.
package enum Journal {
    /// Whether a descriptor is the stream that `JOURNAL_STREAM` names by device and inode, in
    /// decimal: systemd.exec(5). A descriptor that was redirected since is another one.
    static func owns(
        _ descriptor: Int32,
        _ name: String? = getenv("JOURNAL_STREAM").map { String(cString: $0) }
    ) -> Bool {
        guard let name else { return false }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else { return false }
        return name == "\(facts.st_dev):\(facts.st_ino)"
    }

    /// A text of a command for one of the standard streams: as it is, or for the journal each line
    /// with its priority.
    ///
    /// A line with `warning: ` has that priority. An indented line belongs to the line before.
    package static func text(
        _ text: String,
        as usual: LogPriority,
        on descriptor: Int32
    ) -> String {
        guard owns(descriptor) else { return text }
        var priority = usual
        let lines = text.split(separator: "\n").map { line in
            if !line.hasPrefix("  ") {
                priority = line.contains("warning: ") ? .warning : usual
            }
            return "<\(priority.rawValue)>\(line)\n"
        }
        return lines.joined()
    }
}
