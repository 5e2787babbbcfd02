import CLinux
import Encodings
import EventLoops
import Glibc

/// A message between two processes of a gateway while one takes over from the other: see `Upgrade`.
/// Each is one message of their socket.
enum HandoverMessage: Equatable {
    /// A listening socket that is handed over, in the order of the configuration, the operators'
    /// last.
    struct Socket: Equatable {
        let address: String
        /// Whether it belongs to the service manager.
        let isLent: Bool
        /// One for each event loop.
        let count: Int
    }

    /// From the old process, first: the things to take over.
    ///
    /// - store: the name of the store.
    case plan(store: String, sockets: [Socket])
    /// Descriptors of the sockets, in their order; in several messages if necessary.
    case sockets
    /// From the new process: it could serve, and is of this version.
    case ready(version: String)
    /// From the new process: why it can't serve.
    case failed(String)
    /// From the new process, each second until it has everything: it does not hang.
    case alive
    /// From the old process: a piece of the state. The first one carries the store's descriptors.
    case state([UInt8], isLast: Bool)
    /// From the new process: it has everything, but decides nothing yet.
    case taken
    /// From the old process: it decides nothing any more.
    case go
    /// From the old process, afterwards, and the answer.
    case question(UInt64, [UInt8])
    case answer(UInt64, [UInt8])

    /// The version of this protocol. Another version of the program may have another one.
    static let version: UInt8 = 1
    /// The most bytes of a message.
    static let bytesMax = 96 << 10
    /// The most bytes of state in one message.
    static let pieceMax = 64 << 10
    private static let textMax = 16 << 10
    private static let socketsMax = 1_024
    private static let loopsMax = 1_024

    /// The first byte of a message.
    private enum Kind: UInt8 {
        case plan = 1
        case sockets, ready, failed, state, taken, go, question, answer, alive
    }

    private var kind: Kind {
        switch self {
        case .plan: .plan
        case .sockets: .sockets
        case .ready: .ready
        case .failed: .failed
        case .state: .state
        case .taken: .taken
        case .go: .go
        case .question: .question
        case .answer: .answer
        case .alive: .alive
        }
    }

    var bytes: [UInt8] {
        var out = ByteWriter()
        out.byte(kind.rawValue)
        switch self {
        case .plan(let store, let sockets):
            out.byte(Self.version)
            out.text(store)
            out.word(UInt64(sockets.count))
            for socket in sockets {
                out.text(socket.address)
                out.flag(socket.isLent)
                out.word(UInt64(socket.count))
            }
        case .failed(let text), .ready(let text): out.text(String(text.prefix(Self.textMax / 4)))
        case .state(let piece, let isLast):
            out.flag(isLast)
            out.block(piece)
        case .question(let number, let content), .answer(let number, let content):
            out.word(number)
            out.block(content)
        case .sockets, .alive, .taken, .go: break
        }
        return out.bytes
    }

    /// Reads a message.
    ///
    /// - Throws: when it is invalid, or of another version.
    init(_ bytes: [UInt8]) throws(ByteReader.Fault) {
        var bytes = ByteReader(bytes)
        guard let kind = Kind(rawValue: try bytes.byte()) else { throw ByteReader.Fault() }
        switch kind {
        case .plan: self = try Self.plan(&bytes)
        case .sockets: self = .sockets
        case .ready: self = .ready(version: try bytes.text(max: Self.textMax))
        case .alive: self = .alive
        case .failed: self = .failed(try bytes.text(max: Self.textMax))
        case .state:
            let isLast = try bytes.flag()
            self = .state(try bytes.block(max: Self.pieceMax), isLast: isLast)
        case .taken: self = .taken
        case .go: self = .go
        case .question: self = .question(try bytes.word(), try bytes.block())
        case .answer: self = .answer(try bytes.word(), try bytes.block())
        }
        try bytes.end()
    }

    private static func plan(_ bytes: inout ByteReader) throws(ByteReader.Fault) -> Self {
        guard try bytes.byte() == version else { throw ByteReader.Fault() }
        let store = try bytes.text(max: textMax)
        let count = try bytes.word()
        guard count <= UInt64(socketsMax) else { throw ByteReader.Fault() }
        var sockets: [Socket] = []
        for _ in 0..<count {
            let address = try bytes.text(max: textMax)
            let isLent = try bytes.flag()
            let loops = try bytes.word()
            guard loops >= 1, loops <= UInt64(loopsMax) else { throw ByteReader.Fault() }
            sockets.append(Socket(address: address, isLent: isLent, count: Int(loops)))
        }
        return .plan(store: store, sockets: sockets)
    }
}

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
