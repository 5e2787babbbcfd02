import Glibc

/// Sends datagrams to a Unix socket. The descriptor is open until the end of the process.
package struct DatagramSender: Sendable {
    /// How long a message waits for a reader who is behind: seconds.
    private static let patienceSeconds = 1

    private let descriptor: Int32
    private let address: SocketAddress

    /// - Throws: `SocketError` of socket.
    package init(to address: SocketAddress) throws(SocketError) {
        let type = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        descriptor = Glibc.socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw SocketError("socket") }
        self.address = address
        var time = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, size)
    }

    /// Sends a text as one datagram; one that can't be sent is lost.
    package func send(_ text: String) {
        let bytes = Array(text.utf8)
        _ = address.withKernelForm { name, length in
            sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), name, length)
        }
    }
}
