import Glibc

extension SocketAddress {
    /// The time between two probes: no event tells that somebody listens. Blocks.
    package static func pause(milliseconds: Int32) { _ = poll(nil, 0, milliseconds) }

    /// Whether something takes connections at this address now: a connection is made and closed.
    ///
    /// Blocks, at most for so long; for tools, never on a lane.
    package func takesConnections(within milliseconds: Int32) -> Bool {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(Int32(storage.ss_family), type, 0)
        guard descriptor >= 0 else { return false }
        defer { _ = Glibc.close(descriptor) }
        if withKernelForm({ connect(descriptor, $0, $1) }) == 0 { return true }
        guard errno == EINPROGRESS else { return false }
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&entry, 1, milliseconds) == 1 else { return false }
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0
    }
}
