import Glibc
import HTTPWire
import Synchronization

/// A blocking TCP socket on the loopback interface. A wait of more than ``patience`` is a
/// bug.
final class Socket: Sendable {
    /// Seconds.
    private static let patience = 10

    private let descriptor: Int32
    private let resetSeen = Atomic<Bool>(false)

    /// Whether the peer has reset the connection.
    var wasReset: Bool { resetSeen.load(ordering: .relaxed) }

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
        var limit = timeval(tv_sec: Self.patience, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    }

    deinit { close(descriptor) }

    static func connected(to port: UInt16) throws(DemoError) -> Socket {
        let socket = Socket(Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        guard withLoopback(port, { connect(socket.descriptor, $0, $1) }) == 0 else {
            throw DemoError("can't connect to 127.0.0.1:\(port): \(lastError)")
        }
        return socket
    }

    /// Listens on a port that the system chooses.
    static func listening() throws(DemoError) -> (socket: Socket, port: UInt16) {
        // Waiting for connections has no time limit.
        let socket = Socket(Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        var forever = timeval()
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(socket.descriptor, SOL_SOCKET, SO_RCVTIMEO, &forever, size)
        guard withLoopback(0, { bind(socket.descriptor, $0, $1) }) == 0,
            listen(socket.descriptor, 128) == 0
        else { throw DemoError("can't listen: \(lastError)") }
        var bound = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        // The kernel writes at most `length` bytes of a record that is as long.
        _ = withUnsafeMutableBytes(of: &bound) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) {
                getsockname(socket.descriptor, $0.baseAddress, &length)
            }
        }
        return (socket, UInt16(bigEndian: bound.sin_port))
    }

    /// The next connection; `nil` when there will be none.
    func accepted() -> Socket? {
        let descriptor = accept(descriptor, nil, nil)
        return descriptor >= 0 ? Socket(descriptor) : nil
    }

    /// Sends all bytes.
    func write(_ bytes: some Collection<UInt8>) throws(DemoError) {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            // Pointer and count are of the part that is left, which is not empty.
            let count = bytes[sent...].withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw DemoError("can't send: \(Self.lastError)") }
            sent += count
        }
    }

    func endOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// The bytes that have come, at least one; empty when the peer has ended or is gone.
    func read() throws(DemoError) -> [UInt8] {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
            // At most the buffer's count is written.
            let received = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if received < 0 { failure = errno }
            count = max(received, 0)
        }
        guard failure != EAGAIN else { throw DemoError("nothing came for \(Self.patience) s") }
        if failure == ECONNRESET { resetSeen.store(true, ordering: .relaxed) }
        return bytes
    }

    private static var lastError: String { String(cString: strerror(errno)) }

    private static func withLoopback(
        _ port: UInt16,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        return withUnsafeBytes(of: address) { bytes in
            // A sockaddr_in is aligned as a sockaddr and as long.
            bytes.withMemoryRebound(to: sockaddr.self) { records in
                guard let base = records.baseAddress else {
                    preconditionFailure("Socket: no address")
                }
                return body(base, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

/// Reads messages off a socket, heads and then contents, as the gateway does.
final class MessageReader {
    /// A message's first line and fields.
    struct Head: Sendable {
        let line: String
        let fields: [(name: String, value: String)]
        fileprivate let framing: BodyFraming

        /// The value of a field's first line.
        subscript(name: String) -> String? {
            fields.first { $0.name.lowercased() == name.lowercased() }?.value
        }

        fileprivate init(_ bytes: [UInt8], _ section: FieldSection, _ framing: BodyFraming) {
            func text(_ range: some RangeExpression<Int>) -> String {
                String(decoding: bytes[range], as: UTF8.self)
            }
            line = text(..<(bytes.firstIndex(of: UInt8(ascii: "\r")) ?? 0))
            fields = section.fields.map { (text($0.name), text($0.value)) }
            self.framing = framing
        }
    }

    private let socket: Socket
    private let subject: HeadScanner.Subject
    private let limits = HeadLimits()
    private var inbox: [UInt8] = []

    /// - subject: whether requests or responses come.
    init(_ socket: Socket, _ subject: HeadScanner.Subject) {
        self.socket = socket
        self.subject = subject
    }

    /// The next head; `nil` when the peer ends before one is complete.
    func head() throws(DemoError) -> Head? {
        var scanner = HeadScanner(subject)
        while true {
            let bytes = inbox
            do throws(Malformed) {
                if case .complete(let range) = try scanner.scan(bytes.span, limits: limits) {
                    inbox.removeFirst(range.upperBound)
                    return try head(Array(bytes[range]))
                }
            } catch {
                throw DemoError("no message: \(error.reason.rawValue)")
            }
            guard try fill() else { return nil }
        }
    }

    private func head(_ bytes: [UInt8]) throws(Malformed) -> Head {
        if case .response = subject {
            var head = ResponseHead()
            try head.read(bytes.span, to: .get, upgradeSent: false, limits: limits)
            return Head(bytes, head.fields, head.framing)
        }
        var head = RequestHead()
        try head.read(bytes.span, isSecure: false, limits: limits)
        return Head(bytes, head.fields, head.framing)
    }

    /// Reads the content after a head, piece by piece.
    ///
    /// - Returns: whether it came to its end.
    func content(of head: Head, _ take: ([UInt8]) -> Void) throws(DemoError) -> Bool {
        var body = BodyReader(head.framing, limits: limits)
        while true {
            var position = 0
            let bytes = inbox
            let step: BodyReader.Step
            do throws(Malformed) {
                step = try body.read(bytes.span, from: &position)
            } catch {
                return false
            }
            if case .content(let range) = step { take(Array(bytes[range])) }
            inbox.removeFirst(position)
            if case .finished = step { return true }
            if case .needMore = step, try !fill() { return (try? body.close()) != nil }
        }
    }

    private func fill() throws(DemoError) -> Bool {
        let more = try socket.read()
        inbox += more
        return !more.isEmpty
    }
}
