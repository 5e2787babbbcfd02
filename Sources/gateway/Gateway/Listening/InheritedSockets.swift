import EventLoops
import Glibc

/// Listening sockets that the process was started with. They come from systemd (sd_listen_fds(3)),
/// which keeps them so that clients can connect while the gateway restarts, or from the
/// predecessor.
package struct InheritedSockets: Sendable {
    /// One of the sockets.
    struct Entry: Sendable {
        let descriptor: Int32
        /// Its name in the socket unit.
        let name: String
        /// The address that it is bound to.
        let address: SocketAddress
        /// Further sockets with the address for the other event loops, if the predecessor had one
        /// for each.
        var siblings: [Int32] = []
        /// The owner of the socket.
        var ownership = Listener.Ownership.lent
        /// Its address in the predecessor's configuration; `nil` where systemd gave the socket.
        var configured: String?

        var text: String {
            address.text.map { "\(name) at \($0)" } ?? name
        }
    }

    /// The first descriptor (SD_LISTEN_FDS_START).
    private static let first: Int32 = 3
    /// The most sockets that are checked.
    private static let countMax: Int32 = 1_024

    private(set) var entries: [Entry] = []
    /// Problems of sockets that can't be listened on.
    private(set) var problems: [String] = []

    /// No sockets.
    package init() {}

    /// Reads `LISTEN_FDS`, `LISTEN_PID` and `LISTEN_FDNAMES`. Called once, before the process opens
    /// a descriptor.
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
            // A program that this one starts must not inherit it.
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

    /// The sockets that the predecessor hands over.
    ///
    /// - descriptors: one for each socket, in their order.
    init(_ sockets: [HandoverMessage.Socket], _ descriptors: [Int32]) {
        precondition(sockets.reduce(0) { $0 + $1.count } == descriptors.count, "InheritedSockets")
        var rest = descriptors[...]
        for socket in sockets {
            let own = Array(rest.prefix(socket.count))
            rest = rest.dropFirst(socket.count)
            entries.append(
                Entry(
                    descriptor: own[0],
                    name: socket.address,
                    address: Listener.boundAddress(own[0]),
                    siblings: Array(own.dropFirst()),
                    ownership: socket.isLent ? .lent : .own,
                    configured: socket.address
                )
            )
        }
    }

    /// Takes the socket of an address; `nil` when there is none.
    ///
    /// - server: the address in the configuration: the port of `:0` differs each time.
    mutating func take(_ address: SocketAddress, of server: String) -> Entry? {
        let index = entries.firstIndex { entry in
            entry.configured.map { $0 == server } ?? entry.address.isSame(as: address)
        }
        return index.map { entries.remove(at: $0) }
    }

    /// Closes the sockets that no listener has taken, and returns a problem for each.
    mutating func discardRest() -> [String] {
        defer { entries = [] }
        let rest = entries.map { entry in
            for descriptor in [entry.descriptor] + entry.siblings { Connection.discard(descriptor) }
            return "\(entry.text) is no address of `listen` or `admin`"
        }
        return problems + rest
    }
}
