import CLinux
import EventLoops
import Glibc

/// The socket between two processes of a gateway. Messages keep their boundaries; each is sent
/// whole.
///
/// The peer is the same program under the same user. Its messages are checked nevertheless: it may
/// be of another version.
final class HandoverSocket: Sendable {
    /// The time that a send may wait for the peer to read.
    private static let sendSeconds = 2
    /// The most descriptors in one message.
    static let descriptorsMax = 250

    let descriptor: Int32

    /// Takes an open socket.
    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var time = timeval(tv_sec: Self.sendSeconds, tv_usec: 0)
        let length = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, length)
    }

    deinit { close(descriptor) }

    /// Two connected sockets; `nil` when the process has no descriptors left.
    static func pair() -> (HandoverSocket, HandoverSocket)? {
        var descriptors: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &descriptors) == 0 else { return nil }
        return (HandoverSocket(descriptors[0]), HandoverSocket(descriptors[1]))
    }

    /// - Returns: whether it was sent.
    func send(_ message: HandoverMessage, descriptors: [Int32] = []) -> Bool {
        let bytes = message.bytes
        guard bytes.count <= HandoverMessage.bytesMax else { return false }
        while true {
            let sent = bytes.span.withUnsafeBytes { bytes in
                // The C border: pointers and counts are of buffers that outlive the call.
                clinux_send_descriptors(
                    descriptor,
                    bytes.baseAddress,
                    bytes.count,
                    descriptors,
                    Int32(descriptors.count)
                )
            }
            if sent == bytes.count { return true }
            guard sent < 0, errno == EINTR else { return false }
        }
    }

    enum Receipt {
        case message(HandoverMessage, [Int32])
        /// The peer has closed its end: it is gone.
        case ended
        case late
        /// The message is not of this version.
        case malformed
    }

    /// Waits for a message.
    ///
    /// - milliseconds: the longest wait; `nil` for no limit.
    func receive(within milliseconds: Int?) -> Receipt {
        let end = milliseconds.map { MonotonicClock.milliseconds &+ UInt64($0) }
        while true {
            var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let left = end.map { Int32(clamping: $0 &- min($0, MonotonicClock.milliseconds)) }
            let count = poll(&watched, 1, left ?? -1)
            if count == 0 { return .late }
            guard count > 0 || errno == EINTR else { return .ended }
            if count > 0 { return take() }
        }
    }

    private func take() -> Receipt {
        var descriptors = [Int32](repeating: -1, count: Self.descriptorsMax)
        var descriptorCount: Int32 = 0
        var received = -1
        let bytes = [UInt8](unsafeUninitializedCapacity: HandoverMessage.bytesMax) {
            buffer,
            count in
            // At most the buffer's count is written.
            received = clinux_receive_descriptors(
                descriptor,
                buffer.baseAddress,
                buffer.count,
                &descriptors,
                &descriptorCount
            )
            count = max(0, received)
        }
        guard received > 0 else { return .ended }
        let given = Array(descriptors.prefix(Int(descriptorCount)))
        guard let message = try? HandoverMessage(bytes) else {
            for descriptor in given { close(descriptor) }
            return .malformed
        }
        return .message(message, given)
    }
}
