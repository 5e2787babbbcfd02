import CLinux
import Glibc

/// A listening socket on one event loop. TCP listeners of several event loops share a port
/// (SO_REUSEPORT); a Unix socket is bound once and its descriptor duplicated for each event loop.
///
/// Event loops of one process share a port, processes don't. SO_REUSEPORT alone would let a second
/// gateway of the same user take half of the first one's clients without a word. So the first
/// socket of a port is bound without it (``bound(to:)``), which fails while any other socket has
/// the port; only then it is opened to the others of this process (``sibling(of:)``).
package final class Listener: Endpoint {
    /// Connections taken in one go, so that a flood of them leaves turns to the others.
    private static let acceptsPerEventMax = 16
    /// How long accepting pauses when the process or the system has no more descriptors.
    private static let pauseMilliseconds: UInt64 = 100

    /// Bytes that the kernel takes for a peer and has not sent yet; beyond them it takes no more.
    ///
    /// Left alone it takes as many as `tcp_wmem` allows, 4 MiB and more, for every peer that reads
    /// slowly or not at all. TCP_NOTSENT_LOWAT (tcp(7)) bounds only what is not sent: what is on
    /// its way may be as much as the path holds, so that a long path is filled all the same, which
    /// a fixed SO_SNDBUF would prevent.
    package static let unsentMax: Int32 = 128 << 10

    /// Whose the socket is.
    package enum Ownership: Sendable {
        /// This process's: no other accepts from it.
        case own
        /// The service manager's, which keeps it when this process ends. Clients that wait are the
        /// next process's.
        case lent
    }

    /// Whose the socket is.
    package var ownership = Ownership.own
    /// A connection came in: its descriptor and the peer's address.
    package var accepted: ((Int32, SocketAddress) -> Void)?
    /// Accepting paused, for want of descriptors or memory.
    package var paused: ((SocketError) -> Void)?
    /// Accepting paused for the first time, with why; or, `nil`, all who waited have been taken.
    package var shortageChanged: ((SocketError?) -> Void)?
    private var isShort = false

    /// Accepting pauses while all descriptors below this one are taken: those from here on are for
    /// what the accepted need, connections to origins above all.
    package var descriptorsMax = Int32.max
    /// The descriptor accepted last: the lowest that was free (accept(2), POSIX), so that all below
    /// it were taken. 0 when it says nothing any more.
    private var lastAccepted: Int32 = 0

    /// How long a listener that ends still takes connections whose handshake has begun: one round
    /// trip of a slow mobile network.
    package static let closingMilliseconds: UInt64 = 250
    /// Told when the listener has ended; not `nil` while it ends.
    private var ended: (() -> Void)?

    /// Connections that wait to be accepted; the system may allow fewer.
    private static let backlog: Int32 = 4096

    /// Binds and listens, without watching yet.
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

    /// Binds a free address, which may need root. Clients are turned away until
    /// ``listen(_:)``.
    ///
    /// - Throws: `SocketError` of socket or bind, in this order; EADDRINUSE when another socket has
    ///   the address, listening or not.
    package static func bound(to address: SocketAddress) throws(SocketError) -> Int32 {
        let descriptor = try bound(to: address, isShared: false)
        if !address.isUnix { clinux_share_port(descriptor) }
        return descriptor
    }

    /// Binds the TCP address of a bound socket of this process once more, for another event loop.
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
            // Connections that a killed gateway leaves behind keep the port for a minute; this
            // looks past them, and past nothing that listens (socket(7)).
            clinux_reuse_address(descriptor, 1)
            settleAccepted(descriptor)
        }
        if address.family == AF_INET6 {
            clinux_accept_both_families(descriptor)
        }
        guard address.withKernelForm({ bind(descriptor, $0, $1) }) == 0 else {
            let error = SocketError("bind")
            _ = Glibc.close(descriptor)
            throw error
        }
        // Until it listens, another process that looks past what does not listen must not look
        // past this one.
        if !address.isUnix { clinux_reuse_address(descriptor, 0) }
        return descriptor
    }

    /// Sets for a TCP listener what the accepted inherit, which costs no call for each.
    package static func settleAccepted(_ descriptor: Int32) {
        clinux_bound_unsent(descriptor, unsentMax)
        // Small responses must not wait for an acknowledgement.
        clinux_set_no_delay(descriptor)
    }

    /// The same socket for another event loop.
    package static func duplicate(_ descriptor: Int32) throws(SocketError) -> Int32 {
        let other = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard other >= 0 else { throw SocketError("fcntl") }
        return other
    }

    /// Lets clients connect to what was bound.
    package static func listen(_ descriptor: Int32) throws(SocketError) {
        // What is accepted inherits it, so that a restart finds the port free.
        clinux_reuse_address(descriptor, 1)
        guard Glibc.listen(descriptor, backlog) == 0 else { throw SocketError("listen") }
    }

    /// The address a descriptor is bound to: which port 0 became.
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

    /// Begins to watch. Level-triggered: what one event leaves behind comes back with the next.
    package func start() throws(SocketError) {
        try loop.register(self, events: clinux_in | clinux_exclusive)
    }

    /// Ends without losing a connection that a client takes for established.
    ///
    /// Closing a listening TCP socket resets what waits to be accepted, also when others share its
    /// port. So it ignores new clients first, who find the port closed when they try again after a
    /// second, and takes those in the middle of a handshake for ``closingMilliseconds``.
    ///
    /// A socket that is lent is left at once, as it is: to ignore clients would be the next
    /// process's loss.
    ///
    /// - Parameter ended: called once, when it is closed and the last one has been handed over.
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

    /// - Returns: how many were accepted.
    @discardableResult
    private func acceptWaiting(max: Int) -> Int {
        var count = 0
        for _ in 0..<max where !isClosed {
            // Only behind one that was too high; as a rule this costs nothing.
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

    /// Whether a descriptor is free that is not kept for others.
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
        // One that ends has a deadline already, and tries once more then.
        if ended == nil { setDeadline(milliseconds: Self.pauseMilliseconds) }
    }

    private func shortageIsOver() {
        guard isShort else { return }
        isShort = false
        shortageChanged?(nil)
    }

    private var pausedToken: UInt64?
    private var pace = AcceptPace(max: Listener.acceptsPerEventMax)

    /// The pause is over, or the time to end.
    override public func deadlinePassed() {
        if let ended {
            acceptWaiting(max: Int(Self.backlog))
            shortageIsOver()
            close()
            return ended()
        }
        guard let token = pausedToken else { return }
        pausedToken = nil
        loop.watchAgain(descriptor, events: clinux_in | clinux_exclusive, token: token)
        acceptWaiting(max: Self.acceptsPerEventMax)
    }
}

/// How many clients a listener takes at one event.
///
/// To ask until none is left costs one system call more for each event, and mostly one client
/// waits. So a listener asks for as many as came lately. No client is forgotten: a level-triggered
/// listener that has more is ready again at once, as nginx relies on too (`multi_accept off`).
struct AcceptPace: Equatable {
    /// This number of events in a row brings all that they were asked for before more is asked for.
    private static let patience = 4

    /// How many are taken at the next event: 1 to `max`.
    private(set) var count = 1
    private let max: Int
    private var fullEvents = 0

    init(max: Int) { self.max = max }

    /// An event has brought this number: fewer than ``count`` when no more waited.
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
