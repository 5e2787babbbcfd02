import Glibc
import Synchronization

/// A blocking TCP socket on the loopback interface. A wait of more than ``patience`` is a
/// bug.
final class Socket: Sendable {
    /// Seconds.
    private static let patience = 10

    private let descriptor: Int32
    private let resetSeen = Atomic<Bool>(false)

    /// Whether the peer has reset the connection.
    var wasReset: Bool { resetSeen.load(ordering: .relaxed) }

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
        var limit = timeval(tv_sec: Self.patience, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    }

    deinit { close(descriptor) }

    static func connected(to port: UInt16) throws(DemoError) -> Socket {
        let socket = Socket(Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        guard withLoopback(port, { connect(socket.descriptor, $0, $1) }) == 0 else {
            throw DemoError("can't connect to 127.0.0.1:\(port): \(lastError)")
        }
        return socket
    }

    /// Listens on a port that the system chooses.
    static func listening() throws(DemoError) -> (socket: Socket, port: UInt16) {
        // Waiting for connections has no time limit.
        let socket = Socket(Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        var forever = timeval()
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(socket.descriptor, SOL_SOCKET, SO_RCVTIMEO, &forever, size)
        guard withLoopback(0, { bind(socket.descriptor, $0, $1) }) == 0,
            listen(socket.descriptor, 128) == 0
        else { throw DemoError("can't listen: \(lastError)") }
        var bound = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        // The kernel writes at most `length` bytes of a record that is as long.
        _ = withUnsafeMutableBytes(of: &bound) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) {
                getsockname(socket.descriptor, $0.baseAddress, &length)
            }
        }
        return (socket, UInt16(bigEndian: bound.sin_port))
    }

    /// The next connection; `nil` when there will be none.
    func accepted() -> Socket? {
        let descriptor = accept(descriptor, nil, nil)
        return descriptor >= 0 ? Socket(descriptor) : nil
    }

    /// Sends all bytes.
    func write(_ bytes: some Collection<UInt8>) throws(DemoError) {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            // Pointer and count are of the part that is left, which is not empty.
            let count = bytes[sent...].withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw DemoError("can't send: \(Self.lastError)") }
            sent += count
        }
    }

    func endOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// The bytes that have come, at least one; empty when the peer has ended or is gone.
    func read() throws(DemoError) -> [UInt8] {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
            // At most the buffer's count is written.
            let received = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if received < 0 { failure = errno }
            count = max(received, 0)
        }
        guard failure != EAGAIN else { throw DemoError("nothing came for \(Self.patience) s") }
        if failure == ECONNRESET { resetSeen.store(true, ordering: .relaxed) }
        return bytes
    }

    private static var lastError: String { String(cString: strerror(errno)) }

    private static func withLoopback(
        _ port: UInt16,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        return withUnsafeBytes(of: address) { bytes in
            // A sockaddr_in is aligned as a sockaddr and as long.
            bytes.withMemoryRebound(to: sockaddr.self) { records in
                guard let base = records.baseAddress else {
                    preconditionFailure("Socket: no address")
                }
                return body(base, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
