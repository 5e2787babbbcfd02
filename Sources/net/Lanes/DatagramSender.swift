import Glibc

/// Sends datagrams to one address: a Unix socket, or a port of UDP.
package final class DatagramSender: Sendable {
    /// How long a message waits for a reader who is behind: seconds.
    private static let patienceSeconds = 1

    private let descriptor: Int32
    private let address: SocketAddress

    /// - Throws: `SocketError` of socket.
    package init(to address: SocketAddress) throws(SocketError) {
        let type = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        descriptor = Glibc.socket(address.family, type, 0)
        guard descriptor >= 0 else { throw SocketError("socket") }
        self.address = address
        var time = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, size)
    }

    deinit { close(descriptor) }

    /// Sends bytes as one datagram; `false` when they are lost. The address is looked up each time,
    /// so a reader that has begun anew gets the next one.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        address.withKernelForm { name, length in
            sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), name, length)
        } == bytes.count
    }
}
