import Foundation
import LoopbackKit

/// What a process has open: which files, and how many sockets and other things without a name.
///
/// What Dispatch opens for itself is left out, since it says nothing about connections: a thread of
/// its own makes the clock (timerfd) some time after the first timer was set, which may be behind
/// the answer to the first request, and an eventfd of the main queue goes when the main thread
/// does. The gateway makes neither. So is SQLite's log, which each connection of the store opens at
/// its first read, whenever that is.
struct OpenDescriptors: Equatable, CustomStringConvertible {
    private static let leftOut = ["anon_inode:[timerfd]", "anon_inode:[eventfd]", "-wal", "-shm"]

    private var counts: [String: Int] = [:]

    init(of process: Int32) throws {
        let folder = "/proc/\(process)/fd"
        let files = FileManager.default
        for name in try files.contentsOfDirectory(atPath: folder) {
            let link = "\(folder)/\(name)"
            // One that was closed meanwhile leads nowhere.
            guard let target = try? files.destinationOfSymbolicLink(atPath: link),
                !Self.leftOut.contains(where: target.hasSuffix)
            else { continue }
            counts[Self.kind(of: target), default: 0] += 1
        }
    }

    /// Where a link leads, without the number of a socket or a pipe (proc_pid_fd(5)).
    private static func kind(of target: String) -> String {
        for kind in ["socket", "pipe"] where target.hasPrefix(kind + ":[") { return kind }
        return target
    }

    /// Leaves out so many sockets.
    mutating func leaveOut(sockets: Int) { counts["socket", default: 0] -= sockets }

    var count: Int { counts.values.reduce(0, +) }

    var description: String {
        let kinds = counts.sorted { $0.key < $1.key }
        return kinds.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    }
}
