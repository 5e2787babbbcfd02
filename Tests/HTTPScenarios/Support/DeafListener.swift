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

    /// A port of this host that nobody listens on.
    static func refusingAddress() throws -> String {
        let opened = try ListeningSocket.open()
        close(opened.descriptor)
        return "127.0.0.1:\(opened.port)"
    }
}
