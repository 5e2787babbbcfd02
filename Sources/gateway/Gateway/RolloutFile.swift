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
    struct Fault: Error {
        let text: String
    }

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
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return RolloutOrders() }
            throw Fault(text: "orders that can't be read: \(Self.lastError)")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size <= Self.bytesMax
        else { throw Fault(text: "no regular file, or more than 1 MiB") }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeMutableBytes { buffer in
                // The rest is not empty, and inside the buffer.
                Glibc.read(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Fault(text: "orders that can't be read to their end") }
            done += count
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
        let draft = path + ".new"
        unlink(draft)
        try Self.write(orders.json, to: draft, O_CREAT | O_EXCL)
        guard rename(draft, path) == 0 else {
            let error = Self.lastError
            unlink(draft)
            throw Fault(text: "\(path) can't be replaced: \(error)")
        }
        try synchroniseFolder()
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
            throw Fault(text: "\(auditPath) can't be moved aside: \(Self.lastError)")
        }
        try Self.write(change.line, to: auditPath, O_CREAT | O_APPEND)
    }

    private static func write(
        _ bytes: [UInt8],
        to path: String,
        _ flags: Int32
    ) throws(Fault) {
        let descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0o600)
        guard descriptor >= 0 else { throw Fault(text: "\(path) can't be written: \(lastError)") }
        defer { close(descriptor) }
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                // The rest is not empty, and inside the buffer.
                Glibc.write(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Fault(text: "\(path) can't be written: \(lastError)") }
            done += count
        }
        guard fsync(descriptor) == 0 else {
            throw Fault(text: "\(path) can't be brought to disk: \(lastError)")
        }
    }

    /// Makes the new name survive a power cut.
    private func synchroniseFolder() throws(Fault) {
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Fault(text: "\(folder): \(Self.lastError)") }
        // Where a folder can't be synchronised, the file system does it by itself or not at all.
        _ = fsync(descriptor)
        close(descriptor)
    }

    private static var lastError: String { String(cString: strerror(errno)) }
}
