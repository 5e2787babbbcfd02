import CLinux
import Foundation
import Glibc
import LoopbackKit

/// A port of this machine at which connections are accepted, each served by a thread of its own.
final class LoopbackListener: Sendable {
    let port: UInt16
    private let listener: Int32

    init(_ serve: @escaping @Sendable (MessageReader) throws -> Void) throws {
        (listener, port) = try LoopbackKit.listening()
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
