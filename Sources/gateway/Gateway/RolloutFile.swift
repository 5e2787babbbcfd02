package import ConfigurationReading
import Glibc
import JSONText
package import Rules

/// The file of operators' orders. It is beside the store, since the gateway may write there and not
/// in the folder of its configuration. If the store is no file, it is beside the configuration
/// anyway.
///
///     portcullis.db.rollout          the orders in force; replaced as a whole
///     portcullis.db.rollout.log      the audit log: a JSON line for each change, appended
///     portcullis.db.rollout.log.1    what was in it before, once it has reached 1 MiB
package struct RolloutFile: Sendable {
    /// Why a change is not on disk.
    typealias Fault = WholeFile.Fault

    /// The most bytes of the orders: the most orders, at some 500 bytes each.
    private static let bytesMax = 1 << 20
    /// The size at which the audit log is renamed, in bytes; one old file is kept.
    private static let auditMax: Int64 = 1 << 20

    /// The most bytes of it that are read: some hundred changes.
    private static let auditTailMax = 64 << 10

    let path: String
    private var auditPath: String { path + ".log" }

    /// `nil` without a store: then no rule verifies.
    init?(_ configuration: GatewayConfiguration) {
        switch configuration.store {
        case .none: return nil
        case .sqlite(let file): path = file + ".rollout"
        case .postgresql: path = configuration.place(of: "").file + ".rollout"
        }
    }

    /// The orders of a configuration's gateway; without a problem where there are none yet.
    package static func orders(
        of configuration: GatewayConfiguration
    ) -> (orders: RolloutOrders, problem: Problem?) {
        guard let file = RolloutFile(configuration) else { return (RolloutOrders(), nil) }
        do throws(Fault) {
            return (try file.read(), nil)
        } catch {
            let problem = Problem(
                .error,
                Problem.Place(file: file.path, line: 1),
                "",
                found: error.text,
                use: """
                    the file as the gateway wrote it, or delete it: then every rule goes by the \
                    configuration (\(file.path).log says what was ordered)
                    """
            )
            return (RolloutOrders(), problem)
        }
    }

    private func read() throws(Fault) -> RolloutOrders {
        guard let bytes = try WholeFile.read(path, bytesMax: Self.bytesMax) else {
            return RolloutOrders()
        }
        do throws(JSONError) {
            return try RolloutOrders(json: bytes.span)
        } catch {
            throw Fault(text: "orders that can't be understood: \(error.description)")
        }
    }

    /// Appends the change to the audit log, then writes the orders, both durably. Waits for the
    /// disk.
    func save(_ orders: RolloutOrders, _ change: RolloutOrders.Change) throws(Fault) {
        try audit(change)
        try WholeFile.replace(path, by: orders.json)
    }

    /// The last lines of the audit log, the oldest first; `nil` where it can't be read. Waits for
    /// the disk.
    func lastChanges(atMost count: Int) -> [[UInt8]]? {
        let descriptor = open(auditPath, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return errno == ENOENT ? [] : nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return nil
        }
        let start = max(0, Int(status.st_size) - Self.auditTailMax)
        var bytes = [UInt8](repeating: 0, count: Self.auditTailMax)
        let read = bytes.withUnsafeMutableBytes { buffer in
            pread(descriptor, buffer.baseAddress, buffer.count, off_t(start))
        }
        guard read >= 0 else { return nil }
        var lines = bytes.prefix(read).split(separator: UInt8(ascii: "\n")).map(Array.init)
        // The first line may have lost its beginning, and a crash may have cut any line.
        if start > 0, !lines.isEmpty { lines.removeFirst() }
        return lines.filter { $0.first == 0x7B && $0.last == 0x7D }.suffix(count)
    }

    private func audit(_ change: RolloutOrders.Change) throws(Fault) {
        var status = stat()
        if lstat(auditPath, &status) == 0, status.st_size >= Self.auditMax,
            rename(auditPath, auditPath + ".1") != 0
        {
            throw Fault(text: "\(auditPath) can't be moved aside: \(WholeFile.lastError)")
        }
        try WholeFile.write(change.line, to: auditPath, O_CREAT | O_APPEND)
    }
}
