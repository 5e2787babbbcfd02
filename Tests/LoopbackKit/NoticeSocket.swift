import Glibc

/// A service manager's socket, which collects what a gateway tells.
package final class NoticeSocket {
    private let descriptor: Int32
    private var texts: [String] = []

    /// At a path, or, behind `@`, at an abstract name.
    package init(_ name: String) throws {
        let type = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        descriptor = socket(AF_UNIX, type, 0)
        var address = LoopbackKit.address(path: name)
        // An abstract name begins with a zero byte and is as long as the address says (unix(7)).
        if name.hasPrefix("@") { address.sun_path.0 = 0 }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.utf8.count)
        let status = withUnsafeBytes(of: address) {
            bind(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, length)
        }
        guard status == 0 else { throw LoopbackKit.Failure("bind") }
    }

    deinit { close(descriptor) }

    /// What has come, once a message has come that holds this text.
    @discardableResult
    package func wait(for text: String) throws -> [String] {
        let deadline = Wire.deadline()
        while !texts.contains(where: { $0.contains(text) }) {
            guard .now < deadline, let next = next() else {
                throw ChildProcess.Failure(description: "no \(text) in \(texts)")
            }
            texts.append(next)
        }
        return texts
    }

    /// Forgets what has come.
    package func forget() { texts = [] }

    /// The next message; `nil` when none comes in time.
    package func next(within milliseconds: Int32 = Wire.patienceMilliseconds) -> String? {
        guard Wire.isReady(descriptor, for: POLLIN, within: milliseconds) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
