import CLinux
package import EventLoops
import Glibc
import Synchronization

/// One end of a connection in a test, plain or under TLS; every wait has a deadline.
///
/// `@unchecked Sendable`: it is handed from the thread that made it to one other, and used by one
/// at a time, save that one may send while one receives, and any may cut it: see `ending`.
package final class Wire: @unchecked Sendable {
    /// How long a test waits for what must happen; only a failure waits so long.
    ///
    /// Generous: the gateway's event loops run in this process, and beside other suites they may
    /// get no thread of Dispatch for many seconds.
    package static let patienceMilliseconds: Int32 = 120_000

    /// When a test that begins to wait now gives up.
    package static func deadline() -> ContinuousClock.Instant {
        .now + .milliseconds(Int(patienceMilliseconds))
    }

    package private(set) var descriptor: Int32
    /// Held while the descriptor is closed, or cut by another thread.
    private let ending = Mutex(())
    private let tls: TLSSession?
    /// Why what TLS says by itself, such as tickets, could not be sent.
    private var answerFault: (any Error)?
    /// Bytes that came and were not taken.
    package var inbox: [UInt8] = []

    package init(descriptor: Int32, tls: TLSSession? = nil) {
        self.descriptor = descriptor
        self.tls = tls
        Self.set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    }

    deinit { close() }

    /// Connects to a port of this host, from 127.0.0.`host` where that is given.
    package convenience init(port: UInt16, from host: UInt8? = nil, tls: TLSSession? = nil) throws {
        self.init(descriptor: try LoopbackKit.connected(port: port, from: host), tls: tls)
    }

    /// Connects to a Unix socket.
    package convenience init(path: String) throws {
        self.init(descriptor: try LoopbackKit.connected(path: path))
    }

    /// The port of this end.
    package var localPort: UInt16 { LoopbackKit.port(of: descriptor, getsockname) }

    package static func set(_ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// The TLS session took up an earlier one.
    package var isResumed: Bool { tls?.isResumed ?? false }
    /// The peer has said that it sends nothing more, by close_notify; not by a mere end.
    package var wasEndedInOrder: Bool { tls?.isEndedByPeer ?? false }

    // MARK: Sending

    package func send(_ text: String) throws { try send(Array(text.utf8)) }

    package func send(_ bytes: [UInt8]) throws {
        guard let tls else { return try sendRaw(bytes) }
        while !tls.isEstablished { try exchangeRecords() }
        for start in stride(from: 0, to: bytes.count, by: 1 << 16) {
            let piece = Array(bytes[start..<min(start + (1 << 16), bytes.count)])
            guard tls.write(piece.span) else { throw WireFault.failed("tls", 0) }
            try sendCiphertext()
        }
    }

    /// Sends as much as is taken without waiting longer than this for room; how much that was.
    package func sendUntilStalled(_ bytes: [UInt8], milliseconds: Int32) throws -> Int {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    descriptor,
                    $0.baseAddress?.advanced(by: sent),
                    $0.count - sent,
                    Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
                )
            }
            if count > 0 {
                sent += count
            } else if errno == EAGAIN {
                guard wait(for: POLLOUT, milliseconds) else { return sent }
            } else {
                throw Self.fault("send")
            }
        }
        return sent
    }

    /// Waits until the other side's system has all that was sent.
    package func awaitTaken(within milliseconds: Int32 = Wire.patienceMilliseconds) throws {
        for _ in 0..<milliseconds {
            if clinux_unacknowledged(descriptor) == 0 { return }
            // Nothing is asked for, so this is a millisecond, or the end of the connection.
            if wait(for: 0, 1) { throw WireFault.reset }
        }
        throw WireFault.timedOut
    }

    private func sendRaw(_ bytes: [UInt8]) throws {
        let sent = try sendUntilStalled(bytes, milliseconds: Self.patienceMilliseconds)
        guard sent == bytes.count else { throw WireFault.timedOut }
    }

    /// Says that nothing more is sent.
    package func finishSending() {
        if let tls {
            tls.shutDown()
            try? sendCiphertext()
        }
        shutdown(descriptor, Int32(SHUT_WR))
    }

    package func close() {
        ending.withLock { _ in
            guard descriptor >= 0 else { return }
            Glibc.close(descriptor)
            descriptor = -1
        }
    }

    /// Ends both directions, from any thread, unless it is closed: the number may be another's.
    package func cut() {
        ending.withLock { _ in
            guard descriptor >= 0 else { return }
            shutdown(descriptor, Int32(SHUT_RDWR))
        }
    }

    /// Closes so that the peer sees a reset.
    package func reset() {
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    // MARK: Receiving

    /// Whether something can be read, or the end has come, within this time.
    package func isReadable(within milliseconds: Int32) -> Bool { wait(for: POLLIN, milliseconds) }

    /// Waits for at least one byte and appends what came to the inbox.
    package func receive(atMost max: Int = 1 << 16) throws {
        guard let tls else { return inbox += try receiveRaw(atMost: max) }
        var plain = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let outcome = plain.withUnsafeMutableBytes { tls.read(into: $0) }
            noteFault { try sendCiphertext() }
            switch outcome {
            case .bytes(let count): return inbox += plain[..<count]
            case .needsInput:
                let bytes = try receiveRecords()
                tls.feed(bytes.span)
            case .closed: throw WireFault.ended
            case .failed(let failure):
                // A close with bytes unread is a reset, and the peer may lose the alert to it.
                shutdown(descriptor, Int32(SHUT_WR))
                while isReadable(within: 2_000), (try? receiveRaw(atMost: 1 << 16)) != nil {}
                throw WireFault.malformed("TLS: \(failure)")
            }
        }
    }

    private func noteFault(_ send: () throws -> Void) {
        do {
            try send()
        } catch {
            if answerFault == nil { answerFault = error }
        }
    }

    /// What came before a reset is read all the same.
    private func receiveRecords() throws -> [UInt8] {
        do {
            return try receiveRaw(atMost: 1 << 16)
        } catch {
            // The system tells of a reset once, and then of an end.
            if let answerFault { throw answerFault }
            throw error
        }
    }

    private func exchangeRecords() throws {
        guard let tls else { return }
        // Reading is what moves the handshake. The first content may come with its end.
        var first: [UInt8] = [0]
        let outcome = first.withUnsafeMutableBytes { tls.read(into: $0) }
        try sendCiphertext()
        switch outcome {
        case .failed(let failure): throw WireFault.malformed("TLS: \(failure)")
        case .bytes(let count): inbox += first[..<count]
        case .needsInput, .closed: break
        }
        if !tls.isEstablished {
            let bytes = try receiveRaw(atMost: 1 << 16)
            tls.feed(bytes.span)
        }
    }

    private func sendCiphertext() throws {
        var bytes: [UInt8] = []
        tls?.takeCiphertext(into: &bytes)
        try sendRaw(bytes)
    }

    private func receiveRaw(atMost max: Int) throws -> [UInt8] {
        guard wait(for: POLLIN, Self.patienceMilliseconds) else { throw WireFault.timedOut }
        var bytes = [UInt8](repeating: 0, count: max)
        let count = recv(descriptor, &bytes, max, 0)
        guard count != 0 else { throw WireFault.ended }
        guard count > 0 else { throw Self.fault("recv") }
        bytes.removeLast(max - count)
        return bytes
    }

    /// Whether the other side resets the connection in this time; nothing is read meanwhile.
    package func isReset(within milliseconds: Int32) -> Bool {
        // What is not asked for is told all the same: an error or a hang-up.
        wait(for: 0, milliseconds)
    }

    /// Waits, without reading, until the other side has sent its end or a reset.
    package func awaitHangup() {
        // POLLRDHUP (Linux, poll(2)).
        _ = wait(for: 0x2000, Self.patienceMilliseconds)
    }

    /// How many segments have come, with those that only acknowledge.
    package var segmentsReceived: Int {
        // tcpi_segs_in, behind 140 bytes.
        Int(kernelFacts[35])
    }

    /// How many segments have come that carry bytes of content.
    package var contentSegmentsReceived: Int {
        // tcpi_data_segs_in, behind 152 bytes.
        Int(kernelFacts[38])
    }

    /// The kernel's tcp_info, of which glibc's has only the first half, as numbers of 32 bits.
    private var kernelFacts: [UInt32] {
        var facts = [UInt32](repeating: 0, count: 64)
        var length = socklen_t(facts.count * 4)
        getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &facts, &length)
        return facts
    }

    private func wait(for event: Int32, _ milliseconds: Int32) -> Bool {
        Self.isReady(descriptor, for: event, within: milliseconds)
    }

    /// Whether a descriptor is ready, or at its end, within this time; -1 is for ever.
    package static func isReady(_ descriptor: Int32, for event: Int32, within milliseconds: Int32)
        -> Bool
    {
        var entry = pollfd(fd: descriptor, events: Int16(event), revents: 0)
        return poll(&entry, 1, milliseconds) > 0
    }

    private static func fault(_ call: String) -> WireFault {
        let code = errno
        return code == ECONNRESET || code == EPIPE ? .reset : .failed(call, code)
    }
}
