import Glibc

/// A port at which a connect neither succeeds nor fails: its queue is full, and Linux drops the SYN
/// of whoever comes then.
final class DeafPort: Sendable {
    let port: UInt16
    private let descriptors: [Int32]

    init() throws {
        let (listener, port) = try Self.bound(isListening: true)
        self.port = port
        var target = Socket.loopback(port)
        let flags = Int32(
            SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        )
        let waiting = (0..<4).map { _ in
            let descriptor = socket(AF_INET, flags, 0)
            _ = withUnsafePointer(to: &target) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            return descriptor
        }
        descriptors = [listener] + waiting
    }

    deinit { for descriptor in descriptors { close(descriptor) } }

    private static func bound(isListening: Bool) throws -> (Int32, UInt16) {
        let flags = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_INET, flags, 0)
        var address = Socket.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, size) == 0
                    && (!isListening || listen(descriptor, 0) == 0)
                    && getsockname(descriptor, address, &size) == 0
            }
        }
        guard isBound else { throw Socket.Failure("bind") }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// A port that nobody listens on.
    static func refusing() throws -> UInt16 {
        let (descriptor, port) = try bound(isListening: false)
        close(descriptor)
        return port
    }
}
