import Glibc

/// A port that refuses every connect. It stays bound, so that nobody else can listen on it.
package final class RefusingPort: Sendable {
    package let address: String
    private let descriptor: Int32

    package init() throws {
        descriptor = try LoopbackKit.bound()
        address = "127.0.0.1:\(LoopbackKit.port(of: descriptor, getsockname))"
    }

    deinit { close(descriptor) }
}
