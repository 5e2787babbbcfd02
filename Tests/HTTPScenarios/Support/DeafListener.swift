import Glibc

/// A port at which a connect neither succeeds nor fails: its queue is full.
///
/// Linux drops the SYN of a connection that the queue has no room for; the client tries again
/// later.
final class DeafListener: Sendable {
    let address: String
    private let listener: Int32
    private let waiting: [Int32]

    init() throws {
        let opened = try ListeningSocket.open(backlog: 0)
        listener = opened.descriptor
        address = "127.0.0.1:\(opened.port)"
        let target = Wire.address(port: opened.port)
        let flags = Wire.streamType | Int32(SOCK_NONBLOCK.rawValue)
        waiting = (0..<4).map { _ in
            let descriptor = socket(AF_INET, flags, 0)
            _ = Wire.call(connect, descriptor, target)
            return descriptor
        }
    }

    deinit { for descriptor in waiting + [listener] { close(descriptor) } }
}

/// A port that refuses every connect. It stays bound, so that nobody else can listen on it.
final class RefusingPort: Sendable {
    let address: String
    private let descriptor: Int32

    init() throws {
        descriptor = socket(AF_INET, Wire.streamType, 0)
        guard Wire.call(bind, descriptor, Wire.address(port: 0)) == 0 else {
            throw WireFault.failed("bind", errno)
        }
        address = "127.0.0.1:\(Wire.port(of: descriptor, getsockname))"
    }

    deinit { close(descriptor) }
}
