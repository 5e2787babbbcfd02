import Glibc
import Lanes

/// Listening sockets that the process was started with (sd_listen_fds(3)): systemd holds them, so
/// that clients can connect while the gateway restarts.
package struct InheritedSockets: Sendable {
    /// One of them.
    struct Entry: Sendable {
        let descriptor: Int32
        /// As the socket unit names it.
        let name: String
        /// What it is bound to.
        let address: SocketAddress

        var text: String {
            address.text.map { "\(name) at \($0)" } ?? name
        }
    }

    /// The first descriptor (SD_LISTEN_FDS_START).
    private static let first: Int32 = 3
    /// The most that are looked at.
    private static let countMax: Int32 = 1_024

    private(set) var entries: [Entry] = []
    /// What was given and can't be listened on.
    private(set) var problems: [String] = []

    /// None.
    package init() {}

    /// From `LISTEN_FDS`, `LISTEN_PID` and `LISTEN_FDNAMES`. Called once, before the process opens
    /// anything.
    package init(_ environment: [String: String], process: Int32 = getpid()) {
        guard environment["LISTEN_PID"].flatMap({ Int32($0) }) == process,
            let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }), count > 0
        else { return }
        let names = (environment["LISTEN_FDNAMES"] ?? "")
            .split(separator: ":", omittingEmptySubsequences: false)
        for index in 0..<min(count, Self.countMax) {
            let descriptor = Self.first + index
            let given = Int(index) < names.count ? String(names[Int(index)]) : ""
            let name = given.isEmpty ? "descriptor \(descriptor)" : given
            // A program that this one starts must not have it.
            guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else {
                problems.append("\(name) is not open")
                continue
            }
            guard Self.listens(descriptor) else {
                problems.append("\(name) is no listening stream socket (Accept= must be no)")
                continue
            }
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
            let address = Listener.boundAddress(descriptor)
            entries.append(Entry(descriptor: descriptor, name: name, address: address))
        }
    }

    private static func listens(_ descriptor: Int32) -> Bool {
        option(descriptor, SO_TYPE) == Int32(SOCK_STREAM.rawValue)
            && option(descriptor, SO_ACCEPTCONN) == 1
    }

    private static func option(_ descriptor: Int32, _ name: Int32) -> Int32? {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
    }

    /// Takes the socket that is bound to an address; `nil` when there is none.
    mutating func take(_ address: SocketAddress) -> Int32? {
        guard let index = entries.firstIndex(where: { $0.address.isSame(as: address) }) else {
            return nil
        }
        return entries.remove(at: index).descriptor
    }

    /// Closes what nobody has taken, and says what that was.
    mutating func discardRest() -> [String] {
        defer { entries = [] }
        let rest = entries.map { entry in
            Connection.discard(entry.descriptor)
            return "\(entry.text) is no address of `listen` or `admin`"
        }
        return problems + rest
    }
}
