import CLinux
import Foundation
import Glibc

/// A port of this machine at which connections are accepted, each served by a thread of its own.
final class LoopbackListener: Sendable {
    let port: UInt16
    private let listener: Int32

    init(_ serve: @escaping @Sendable (MessageReader) throws -> Void) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard listener >= 0 else { throw Socket.Failure("socket") }
        var address = Socket.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, size) == 0 && listen(listener, 512) == 0
                    && getsockname(listener, address, &size) == 0
            }
        }
        guard status else { throw Socket.Failure("listen") }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in accept(serve) }
    }

    /// Ends accepting; connections end with those who made them.
    func end() { shutdown(listener, Int32(SHUT_RDWR)) }

    private func accept(_ serve: @escaping @Sendable (MessageReader) throws -> Void) {
        defer { close(listener) }
        while true {
            // No program that is started meanwhile keeps the connection open.
            let descriptor = clinux_accept(listener, nil, nil)
            guard descriptor >= 0 else {
                if errno == EINTR { continue }
                return
            }
            // The calls of a `Socket` block.
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
            Thread.detachNewThread {
                // Whoever closes early is of no concern here: what came was written down.
                try? serve(MessageReader(Socket(descriptor: descriptor)))
            }
        }
    }
}
