import ConfigurationReading
import EventLoops
import Glibc
import HTTPWire

/// One address, bound once for each event loop.
///
/// Binding may need root and comes first. Clients are refused until ``listen()``, which is called
/// when the start can't fail any more.
struct ListenerSet {
    let address: ServerAddress
    let tls: TLSContext?
    /// `nil` for operators.
    let settings: ListenSettings?
    let ownership: Listener.Ownership
    /// One descriptor for each event loop, in their order.
    let descriptors: [Int32]
    /// The address that it listens on; port 0 was replaced by a real one.
    let bound: SocketAddress

    /// Whether the service manager has the sockets.
    var isLent: Bool { ownership == .lent }

    /// Binds, unless the process was started with a socket of the address.
    ///
    /// - Throws: when the address can't be bound.
    init(
        _ server: ServerAddress,
        tls: TLSContext?,
        for settings: ListenSettings? = nil,
        loops: Int,
        _ inherited: inout InheritedSockets
    ) throws(GatewayError) {
        self.address = server
        self.tls = tls
        self.settings = settings
        guard let address = server.socketAddress else {
            preconditionFailure("ListenerSet: the configuration takes no name to listen on")
        }
        let given = inherited.take(address, of: server.text)
        ownership = given?.ownership ?? .own
        let count = 1 + (given?.siblings.count ?? 0)
        guard count <= max(loops, 1) else {
            // A socket that no event loop accepts from would keep clients waiting for ever.
            throw GatewayError(
                "\(server.text) has \(count) sockets for \(loops) event loops",
                hint: "An upgrade can't lower `event_loops`: leave it as it is, or restart."
            )
        }
        do throws(SocketError) {
            if case .unix(let path) = server, given == nil { ListenerSet.removeStale(path) }
            let first =
                if let given { given.descriptor } else { try Listener.bound(to: address) }
            if given != nil, !address.isUnix { Listener.settleAccepted(first) }
            bound = Listener.boundAddress(first)
            // A given socket is one: the event loops share it, as they share a Unix socket. A
            // predecessor may give one for each event loop.
            let isOne = address.isUnix || given != nil
            var descriptors = [first] + (given?.siblings ?? [])
            while descriptors.count < max(loops, 1) {
                descriptors.append(
                    isOne ? try Listener.duplicate(first) : try Listener.sibling(of: bound)
                )
            }
            self.descriptors = descriptors
        } catch {
            throw ListenerSet.refusal(server, error)
        }
    }

    /// The sockets for clients, in the order of the configuration.
    static func clients(
        _ configuration: GatewayConfiguration,
        _ certificates: [TLSContext?],
        loops: Int,
        inherited: inout InheritedSockets
    ) throws(GatewayError) -> [ListenerSet] {
        var sets: [ListenerSet] = []
        for (listener, certificate) in zip(configuration.listeners, certificates) {
            let set = try ListenerSet(
                listener.address,
                tls: certificate,
                for: listener,
                loops: loops,
                &inherited
            )
            sets.append(set)
        }
        return sets
    }

    /// The sockets for operators, in the order of the configuration.
    static func operators(
        _ configuration: GatewayConfiguration,
        _ inherited: inout InheritedSockets
    ) throws(GatewayError) -> [ListenerSet] {
        var sets: [ListenerSet] = []
        for listener in configuration.admin {
            sets.append(try ListenerSet(listener.address, tls: nil, loops: 1, &inherited))
        }
        return sets
    }

    /// Makes the sockets accept clients.
    func listen() throws(GatewayError) {
        guard !isLent else { return }
        do throws(SocketError) {
            for descriptor in descriptors { try Listener.listen(descriptor) }
        } catch {
            throw ListenerSet.refusal(address, error)
        }
    }

    func socket(ofLoop index: Int) -> LoopUnit.Socket {
        LoopUnit.Socket(
            descriptor: descriptors[index],
            ownership: ownership,
            tls: tls,
            settings: settings
        )
    }

    /// Gives a Unix socket's file to the user, who can then reach and remove it.
    func give(to user: ProcessUser) {
        guard case .unix(let path) = address, !isLent else { return }
        // If it fails, the file stays root's, and clients that can't connect report it.
        _ = lchown(path, user.uid, user.gid)
    }

    private static func refusal(_ server: ServerAddress, _ error: SocketError) -> GatewayError {
        switch error.code {
        case EADDRINUSE where server.isUnix:
            if let holder = PortHolder.predecessor() {
                return GatewayError(
                    "can't listen on \(server.text): \(holder.text) has it, a gateway of this "
                        + "configuration",
                    hint: holder.advice
                )
            }
            return GatewayError(
                "can't listen on \(server.text): it exists",
                hint: "Stop the process that listens on it, or move the file away."
            )
        case ENOENT, ENOTDIR:
            return GatewayError(
                "can't listen on \(server.text): there is no such folder",
                hint: "Make the folder, or choose another path."
            )
        case EADDRINUSE:
            let listening = port(of: server).flatMap(PortHolder.init(listeningOn:))
            let holder = listening ?? PortHolder.predecessor()
            if let holder, holder.isPredecessor {
                return GatewayError(
                    "can't listen on \(server.text): address in use by \(holder.text), a gateway "
                        + "of this configuration",
                    hint: holder.advice
                )
            }
            return GatewayError(
                "can't listen on \(server.text): address in use by \(holder?.text ?? otherProcess)",
                hint: """
                    Stop that process, or choose another address. If it is a gateway that is to \
                    read its configuration again, send it HUP instead of starting another.
                    """
            )
        case EACCES:
            return GatewayError(
                "can't listen on \(server.text): \(error)",
                hint: """
                    Ports below 1024 need root or CAP_NET_BIND_SERVICE \
                    (AmbientCapabilities= in a unit); a Unix socket needs a folder to write to.
                    """
            )
        default:
            return GatewayError(
                "can't listen on \(server.text): \(error)",
                hint: "Check that this machine has the address (ip address)."
            )
        }
    }

    private static func port(of server: ServerAddress) -> UInt16? {
        switch server {
        case .ip(_, let port), .name(_, let port): port
        case .unix: nil
        }
    }

    private static let otherProcess = "another process (ss -ltnp shows which)"

    /// The listening address as text, with the real port.
    var text: String {
        guard let port = bound.port else { return address.text }
        let text = address.text
        guard let colon = text.lastIndex(of: ":") else { return text }
        return text[...colon] + String(port)
    }

    /// Removes a socket file without a listener, which a killed process has left.
    private static func removeStale(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK,
            let address = SocketAddress(unixPath: path)
        else { return }
        do throws(SocketError) {
            Connection.discard(try Connection.open(to: address).descriptor)
        } catch {
            if error.code == ECONNREFUSED { unlink(path) }
        }
    }
}
