import CLinux
import Glibc

/// A listening socket on one event loop. TCP listeners of several event loops share a port
/// (SO_REUSEPORT); a Unix socket is bound once and its descriptor duplicated for each event loop.
///
/// Event loops of one process share a port, processes don't. SO_REUSEPORT alone would let a second
/// gateway of the same user silently take half of the first one's clients. So the first socket of a
/// port is bound without it (``bound(to:)``), which fails while any other socket has the port. Only
/// then this process binds the others (``sibling(of:)``).
package final class Listener: Endpoint {
    /// The most connections accepted at one event, so that a flood of them leaves turns to the
    /// others.
    private static let acceptsPerEventMax = 16
    /// The pause of accepting when the process or the system has no more descriptors.
    private static let pauseMilliseconds: UInt64 = 100

    /// The most bytes that the kernel takes for a peer and has not sent yet.
    ///
    /// By default it takes as many as `tcp_wmem` allows, 4 MiB and more, for every peer that reads
    /// slowly or not at all. TCP_NOTSENT_LOWAT (tcp(7)) bounds only the unsent bytes. The bytes in
    /// flight may be as many as the path holds, so that a long path is still filled. A fixed
    /// SO_SNDBUF would prevent that.
    package static let unsentMax: Int32 = 128 << 10

    /// The owner of the socket.
    package enum Ownership: Sendable {
        /// This process: no other one accepts from it.
        case own
        /// The service manager, which keeps it when this process ends. The next process serves
        /// clients that wait.
        case lent
    }

    /// The owner of the socket.
    package var ownership = Ownership.own
    /// A connection came in: its descriptor and the peer's address.
    package var accepted: ((Int32, SocketAddress) -> Void)?
    /// Accepting paused, for lack of descriptors or memory.
    package var paused: ((SocketError) -> Void)?
    /// Accepting paused for the first time, with the reason; or `nil` when all waiting clients have
    /// been accepted.
    package var shortageChanged: ((SocketError?) -> Void)?
    private var isShort = false

    /// Accepting pauses while all descriptors below this one are used. Higher ones are reserved for
    /// the accepted clients, mostly for connections to origins.
    package var descriptorsMax = Int32.max
    /// The last accepted descriptor. It is the lowest free one (accept(2), POSIX), so all below it
    /// were used. 0 when it is no longer valid.
    private var lastAccepted: Int32 = 0

    /// The time for which an ending listener still accepts connections whose handshake has begun:
    /// one round trip of a slow mobile network.
    package static let closingMilliseconds: UInt64 = 250
    /// Called when the listener has ended; not `nil` while it ends.
    private var ended: (() -> Void)?

    /// The most connections that wait to be accepted; the system may allow fewer.
    private static let backlog: Int32 = 4096

    /// Binds and listens, but does not watch yet.
    ///
    /// - Throws: `SocketError` of socket, bind or listen, in this order.
    package static func open(_ address: SocketAddress) throws(SocketError) -> Int32 {
        let descriptor = try bound(to: address)
        do throws(SocketError) {
            try listen(descriptor)
        } catch {
            _ = Glibc.close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Binds a free address, which may need root. Clients are refused until ``listen(_:)``.
    ///
    /// - Throws: `SocketError` of socket or bind, in this order; EADDRINUSE when another socket has
    ///   the address, listening or not.
    package static func bound(to address: SocketAddress) throws(SocketError) -> Int32 {
        let descriptor = try bound(to: address, isShared: false)
        if !address.isUnix { clinux_share_port(descriptor) }
        return descriptor
    }

    /// Binds the TCP address of a bound socket of this process again, for another event loop.
    ///
    /// - Throws: `SocketError` of socket or bind, in this order.
    package static func sibling(of address: SocketAddress) throws(SocketError) -> Int32 {
        try bound(to: address, isShared: true)
    }

    private static func bound(
        to address: SocketAddress,
        isShared: Bool
    ) throws(SocketError) -> Int32 {
        let descriptor = clinux_socket(address.family)
        guard descriptor >= 0 else { throw SocketError("socket") }
        if !address.isUnix {
            if isShared { clinux_share_port(descriptor) }
            // Connections of a killed gateway keep the port for a minute. This option ignores them,
            // but no socket that listens (socket(7)).
            clinux_reuse_address(descriptor, 1)
            settleAccepted(descriptor)
        }
        if address.family == AF_INET6 { clinux_accept_both_families(descriptor) }
        guard address.withKernelForm({ bind(descriptor, $0, $1) }) == 0 else {
            let error = SocketError("bind")
            _ = Glibc.close(descriptor)
            throw error
        }
        // Until it listens, a process with this option could ignore it too, so it is switched off.
        if !address.isUnix { clinux_reuse_address(descriptor, 0) }
        return descriptor
    }

    /// Sets options of a TCP listener that accepted sockets inherit, so that no call for each is
    /// needed.
    package static func settleAccepted(_ descriptor: Int32) {
        clinux_bound_unsent(descriptor, unsentMax)
        // Small responses must not wait for an acknowledgement.
        clinux_set_no_delay(descriptor)
    }

    /// The socket for another event loop, as a new descriptor.
    package static func duplicate(_ descriptor: Int32) throws(SocketError) -> Int32 {
        let other = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard other >= 0 else { throw SocketError("fcntl") }
        return other
    }

    /// Makes a bound socket accept clients.
    package static func listen(_ descriptor: Int32) throws(SocketError) {
        // Accepted sockets inherit it, so that a restart finds the port free.
        clinux_reuse_address(descriptor, 1)
        guard Glibc.listen(descriptor, backlog) == 0 else { throw SocketError("listen") }
    }

    /// The address that a descriptor is bound to, with the port that replaces 0.
    package static func boundAddress(_ descriptor: Int32) -> SocketAddress {
        var address = SocketAddress()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutableBytes(of: &address.storage) { bytes in
            _ = bytes.withMemoryRebound(to: sockaddr.self) {
                getsockname(descriptor, $0.baseAddress, &length)
            }
        }
        address.length = length
        return address
    }

    /// Begins to watch. Level-triggered: what one event leaves comes back with the next.
    ///
    /// Not with EPOLLEXCLUSIVE: during an upgrade two processes watch the socket, and a connection
    /// could wake only the one that is ending. Its client would wait until another client comes.
    package func start() throws(SocketError) {
        try loop.register(self, events: clinux_in)
    }

    /// Ends without losing a connection that a client regards as established.
    ///
    /// Closing a listening TCP socket resets the connections that wait to be accepted, also when
    /// other sockets share its port. So it first ignores new clients, which find the port closed
    /// when they retry after a second. It accepts those in the middle of a handshake for
    /// ``closingMilliseconds``.
    ///
    /// A lent socket is left at once and unchanged: if it ignored clients, the next process would
    /// lose them.
    ///
    /// - Parameter ended: called once, when it is closed and the last connection has been handed
    ///   over.
    package func endGently(_ ended: @escaping () -> Void) {
        guard !isClosed, self.ended == nil else { return }
        if case .lent = ownership {
            shortageIsOver()
            close()
            return ended()
        }
        self.ended = ended
        if pausedToken == nil { acceptWaiting(max: Int(Self.backlog)) }
        // Where this fails, as for a Unix socket, clients are accepted until the end.
        _ = clinux_refuse_syn(descriptor)
        setDeadline(milliseconds: Self.closingMilliseconds)
    }

    override func ready(_ events: UInt32) {
        // Log once when the accept backlog is empty again.
        if isShort {
            acceptWaiting(max: Self.acceptsPerEventMax)
        } else {
            pace.took(acceptWaiting(max: pace.count))
        }
    }

    /// - Returns: the number of accepted clients.
    @discardableResult
    private func acceptWaiting(max: Int) -> Int {
        var count = 0
        for _ in 0..<max where !isClosed {
            // Checked only after a descriptor that was too high; usually this costs nothing.
            guard lastAccepted < descriptorsMax || hasDescriptors() else {
                pause(SocketError("accept4", code: EMFILE))
                return count
            }
            var peer = SocketAddress()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let connection = clinux_accept(descriptor, &peer.storage, &length)
            guard connection < 0 else {
                peer.length = length
                lastAccepted = connection
                count += 1
                accepted?(connection, peer)
                continue
            }
            switch errno {
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                pause(SocketError("accept4"))
                return count
            case EINTR, ECONNABORTED, EPROTO: continue
            default:
                shortageIsOver()
                return count
            }
        }
        return count
    }

    /// Whether a descriptor is free that is not reserved.
    private func hasDescriptors() -> Bool {
        let lowest = dup(descriptor)
        guard lowest >= 0 else { return false }
        _ = Glibc.close(lowest)
        guard lowest < descriptorsMax else { return false }
        lastAccepted = 0
        return true
    }

    /// Stops watching for a while: a level-triggered listener that can't accept would spin.
    private func pause(_ error: SocketError) {
        guard let token else { return }
        paused?(error)
        if !isShort {
            isShort = true
            shortageChanged?(error)
        }
        loop.unwatch(descriptor)
        self.pausedToken = token
        // An ending listener already has a deadline, and retries then.
        if ended == nil { setDeadline(milliseconds: Self.pauseMilliseconds) }
    }

    private func shortageIsOver() {
        guard isShort else { return }
        isShort = false
        shortageChanged?(nil)
    }

    private var pausedToken: UInt64?
    private var pace = AcceptPace(max: Listener.acceptsPerEventMax)

    /// The pause is over, or the time to end has come.
    override public func deadlinePassed() {
        if let ended {
            acceptWaiting(max: Int(Self.backlog))
            shortageIsOver()
            close()
            return ended()
        }
        guard let token = pausedToken else { return }
        pausedToken = nil
        loop.watchAgain(descriptor, events: clinux_in, token: token)
        acceptWaiting(max: Self.acceptsPerEventMax)
    }
}

/// The number of clients that a listener accepts at one event.
///
/// Accepting until none is left costs one more system call for each event, and mostly one client
/// waits. So a listener accepts as many as came lately. No client is lost: a level-triggered
/// listener with more clients is ready again at once, as nginx relies on too (`multi_accept off`).
struct AcceptPace: Equatable {
    /// After this number of consecutive events with the full count, the count grows.
    private static let patience = 4

    /// The number of clients to accept at the next event: 1 to `max`.
    private(set) var count = 1
    private let max: Int
    private var fullEvents = 0

    init(max: Int) { self.max = max }

    /// An event has brought this number of clients: fewer than ``count`` when no more waited.
    mutating func took(_ taken: Int) {
        guard taken >= count else {
            count = Swift.max(taken, 1)
            fullEvents = 0
            return
        }
        fullEvents += 1
        guard fullEvents == Self.patience else { return }
        fullEvents = 0
        count = min(count * 2, max)
    }
}
