import Glibc

/// A blocking TCP socket. A wait that is longer than its patience is a failure.
package final class Socket: Sendable {
    /// Seconds that a socket waits for a byte, unless it is made with another number.
    package static let patience = 10

    private let descriptor: Int32
    private let patience: Int

    private init(_ descriptor: Int32, patience: Int = Socket.patience) {
        self.descriptor = descriptor
        self.patience = patience
        var limit = timeval(tv_sec: patience, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
        var isOn: Int32 = 1
        setsockopt(
            descriptor,
            Int32(IPPROTO_TCP),
            TCP_NODELAY,
            &isOn,
            socklen_t(MemoryLayout<Int32>.size)
        )
    }

    deinit { close(descriptor) }

    /// Connects to a port of this machine.
    package static func connected(
        to port: UInt16,
        patience: Int = Socket.patience
    ) throws(ToolError) -> Socket {
        let socket = Socket(
            Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | closesOnStart, 0),
            patience: patience
        )
        let loopback = in_addr_t(INADDR_LOOPBACK).bigEndian
        guard withAddress(loopback, port: port, { connect(socket.descriptor, $0, $1) }) == 0 else {
            throw ToolError("can't connect to 127.0.0.1:\(port): \(lastError)")
        }
        return socket
    }

    /// Listens.
    ///
    /// - address: of this machine, as `127.0.0.1` or `0.0.0.0`.
    /// - port: 0 for one that the system chooses.
    package static func listening(
        on address: String = "127.0.0.1",
        port: UInt16 = 0
    ) throws(ToolError) -> (socket: Socket, port: UInt16) {
        var host = in_addr()
        guard inet_pton(AF_INET, address, &host) == 1 else {
            throw ToolError("can't listen on \(address): it is no IPv4 address")
        }
        // Waiting for connections has no time limit.
        let socket = Socket(
            Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | closesOnStart, 0),
            patience: 0
        )
        var isOn: Int32 = 1
        setsockopt(
            socket.descriptor,
            SOL_SOCKET,
            SO_REUSEADDR,
            &isOn,
            socklen_t(MemoryLayout<Int32>.size)
        )
        guard withAddress(host.s_addr, port: port, { bind(socket.descriptor, $0, $1) }) == 0,
            listen(socket.descriptor, 512) == 0
        else { throw ToolError("can't listen on \(address):\(port): \(lastError)") }
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
    package func accepted(patience: Int = Socket.patience) -> Socket? {
        while true {
            let accepted = accept(descriptor, nil, nil)
            if accepted >= 0 { return Socket(accepted, patience: patience) }
            guard errno == EINTR || errno == ECONNABORTED else { return nil }
        }
    }

    /// Sends all bytes.
    package func write(_ bytes: some Collection<UInt8>) throws(ToolError) {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            // Pointer and count are of the part that is left, which is not empty.
            let count = bytes[sent...].withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw ToolError("can't send: \(Self.lastError)") }
            sent += count
        }
    }

    /// Ends both directions: what waits for this socket goes on at once.
    package func cut() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// The bytes that have come, at least one; empty when the peer has ended or is gone.
    package func read() throws(ToolError) -> [UInt8] {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
            // At most the buffer's count is written.
            let received = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if received < 0 { failure = errno }
            count = max(received, 0)
        }
        guard failure != EAGAIN else { throw ToolError("nothing came for \(patience) s") }
        return bytes
    }

    /// A program that is started meanwhile does not inherit the socket.
    private static let closesOnStart = Int32(SOCK_CLOEXEC.rawValue)

    private static var lastError: String { String(cString: strerror(errno)) }

    private static func withAddress(
        _ host: in_addr_t,
        port: UInt16,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = host
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
