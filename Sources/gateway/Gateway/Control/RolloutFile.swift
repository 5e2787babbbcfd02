package import ConfigurationReading
import Encodings
import EventLoops
import Glibc
package import Rules

/// The file of operators' orders. It is beside the store, since the gateway may write there and not
/// in the folder of its configuration. If the store is no file, ``KeptFiles`` says where it is.
///
///     portcullis.db.rollout          the orders in force; replaced as a whole
///     portcullis.db.rollout.log      the audit log: a JSON line for each change, appended
///     portcullis.db.rollout.log.1    what was in it before, once it has reached 1 MiB
///     portcullis.yaml.rollout.fleet  in a fleet: the newest orders that the gateway knows, with
///                                    their version, and orders that the database does not have.
///                                    The first file has what is in force, for commands
package struct RolloutFile: Sendable {
    /// Why a change is not on disk.
    typealias Fault = WholeFile.Fault

    /// A file of orders that can't be read, and why.
    private struct Unreadable: Error {
        let path: String
        let text: String
    }

    /// The most bytes of the orders: the most orders, at some 500 bytes each.
    private static let bytesMax = 2 << 20
    /// The size at which the audit log is renamed, in bytes; one old file is kept.
    private static let auditMax: Int64 = 1 << 20

    /// The most bytes of it that are read: some hundred changes.
    private static let auditTailMax = 64 << 10

    /// The most changes that one state of a fleet adds to the audit log. The database has all.
    private static let auditedMax = 64

    let path: String
    /// `nil` where the orders are of this gateway alone.
    private let fleetPath: String?
    private var auditPath: String { path + ".log" }

    init(_ configuration: GatewayConfiguration) {
        path = KeptFiles.ordersPath(configuration) + ".rollout"
        fleetPath = if case .postgresql = configuration.store { path + ".fleet" } else { nil }
    }

    /// The orders of a configuration's gateway, for commands; without a problem where there are
    /// none yet.
    ///
    /// In a fleet the database is asked: a command runs without the variable that says where a
    /// gateway keeps them. A database that does not answer is a warning.
    package static func orders(
        of configuration: GatewayConfiguration
    ) -> (orders: RolloutOrders, problem: Problem?) {
        let kept = kept(of: configuration)
        var (orders, problem) = kept
        do throws(FleetCommands.Fault) {
            if let fleet = FleetCommands(configuration) {
                orders = try fleet.newest(after: kept.orders)
            }
        } catch {
            let silence = Problem(
                .warning,
                at: configuration.place(of: "store.postgresql"),
                "store.postgresql",
                found: "no orders about rollouts but those kept here, if any: \(error.text)",
                use: "a database that answers, or STATE_DIRECTORY as the gateway has it"
            )
            problem = problem ?? silence
        }
        return (orders.orders(configuration.fileRules), problem)
    }

    /// The orders that a configuration's gateway has kept.
    static func kept(
        of configuration: GatewayConfiguration
    ) -> (orders: FleetOrders, problem: Problem?) {
        let file = RolloutFile(configuration)
        do throws(Unreadable) {
            return (try file.read(), nil)
        } catch {
            // What is in force is kept beside the fleet's orders, and would count as given here.
            let other = error.path == file.path ? "" : " and \(file.path)"
            let problem = Problem(
                .error,
                at: Problem.Place(file: error.path, line: 1),
                "",
                found: error.text,
                use: """
                    the file as the gateway wrote it, or delete it\(other): then every rule goes \
                    by the configuration (\(file.path).log says what was ordered)
                    """
            )
            return (FleetOrders(), problem)
        }
    }

    private func read() throws(Unreadable) -> FleetOrders {
        if let fleetPath, let bytes = try Self.bytes(of: fleetPath) {
            return try Self.understood(fleetPath) { () throws(JSONError) in
                try FleetOrders(json: bytes.span)
            }
        }
        guard let bytes = try Self.bytes(of: path) else { return FleetOrders() }
        let agreed = try Self.understood(path) { () throws(JSONError) in
            try RolloutOrders(json: bytes.span)
        }
        return FleetOrders(agreed: agreed)
    }

    private static func bytes(of path: String) throws(Unreadable) -> [UInt8]? {
        do throws(Fault) {
            return try WholeFile.read(path, bytesMax: bytesMax)
        } catch {
            throw Unreadable(path: path, text: error.text)
        }
    }

    private static func understood<Orders>(
        _ path: String,
        _ read: () throws(JSONError) -> Orders
    ) throws(Unreadable) -> Orders {
        do throws(JSONError) {
            return try read()
        } catch {
            throw Unreadable(
                path: path,
                text: "orders that can't be understood: \(error.description)"
            )
        }
    }

    /// Appends the changes to the audit log, then writes the orders, all durably. Waits for the
    /// disk. Where it fails, the audit log has none of the changes.
    ///
    /// - inForce: the orders in force.
    func save(
        _ orders: FleetOrders,
        inForce: RolloutOrders,
        _ changes: [FleetOrders.Change]
    ) throws(Fault) {
        let lines: [UInt8] = changes.suffix(Self.auditedMax).flatMap { change in
            let isOfFleet = change.version > 0
            return change.change.line(
                order: isOfFleet ? change.version : nil,
                gateway: isOfFleet ? change.gateway : nil
            )
        }
        let size = try lines.isEmpty ? nil : audit(lines)
        do throws(Fault) {
            if let fleetPath { try WholeFile.replace(fleetPath, by: orders.json) }
            try WholeFile.replace(path, by: inForce.json)
        } catch {
            if let size { truncate(auditPath, size) }
            throw error
        }
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

    /// Appends lines to the audit log; all of them or none.
    ///
    /// - Returns: its size before.
    private func audit(_ lines: [UInt8]) throws(Fault) -> off_t {
        var status = stat()
        var size: off_t = lstat(auditPath, &status) == 0 ? status.st_size : 0
        if size >= Self.auditMax {
            guard rename(auditPath, auditPath + ".1") == 0 else {
                throw Fault(text: "\(auditPath) can't be moved aside: \(WholeFile.lastError)")
            }
            size = 0
        }
        // A line that a crash has cut must not run into the next one.
        let end = endsInLine(size) ? [UInt8(ascii: "\n")] : []
        do throws(Fault) {
            try WholeFile.write(end + lines, to: auditPath, O_CREAT | O_APPEND)
        } catch {
            truncate(auditPath, size)
            throw error
        }
        return size
    }

    /// Whether the audit log, of this size, ends in the middle of a line.
    private func endsInLine(_ size: off_t) -> Bool {
        guard size > 0 else { return false }
        let descriptor = open(auditPath, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var last = UInt8(ascii: "\n")
        return pread(descriptor, &last, 1, size - 1) == 1 && last != UInt8(ascii: "\n")
    }
}
