import Glibc

/// A port at which a connect neither succeeds nor fails: its queue is full.
///
/// Linux drops the SYN of a connection that the queue has no room for; the client tries again
/// later.
package final class DeafPort: Sendable {
    package let address: String
    private let descriptors: [Int32]

    package init() throws {
        let listener = try LoopbackKit.listening(backlog: 0)
        address = "127.0.0.1:\(listener.port)"
        let target = LoopbackKit.address(port: listener.port)
        let type = LoopbackKit.stream | Int32(SOCK_NONBLOCK.rawValue)
        let waiting = (0..<4).map { _ in
            let descriptor = socket(AF_INET, type, 0)
            _ = LoopbackKit.call(connect, descriptor, target)
            return descriptor
        }
        descriptors = waiting + [listener.descriptor]
    }

    deinit { for descriptor in descriptors { close(descriptor) } }
}
