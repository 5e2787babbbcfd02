import CLinux
import Glibc

/// A stream socket on an event loop, plain or under TLS.
///
/// Its owner is a subclass. The owner gets an event when there is input to read, when kept bytes
/// have been sent, and when a connect ended. It reads bytes with ``read()`` and sends bytes with
/// ``write(_:_:)``. When it stops reading, the peer has to stop sending.
open class Connection: Endpoint {
    /// The result of a read.
    package enum ReadOutcome {
        /// Bytes in the event loop's input buffer, at least one, valid until its next read.
        case bytes(UnsafeBufferPointer<UInt8>)
        /// There is no input now; ``inputReady()`` follows when there is.
        case wouldBlock
        /// The peer has sent its last byte.
        case ended
        /// The connection is broken.
        case failed(ConnectionError)
    }

    /// The result of a write.
    package enum WriteOutcome {
        /// The kernel has all bytes.
        case sent
        /// Some bytes wait in memory; ``outputDrained()`` follows when they are sent.
        case queued
        /// The connection is broken.
        case failed(ConnectionError)
    }

    /// What follows the written bytes. The raw value says whether the kernel keeps them until then.
    package enum Sequel: Int32 {
        /// More bytes, at a later time.
        case more = 0
        /// The end of this direction: the caller calls ``shutDownOutput()`` next. The kernel sends
        /// both in one segment, which halves the work for it and for the peer's kernel.
        case end = 1
    }

    /// The largest unsent remainder that keeps its memory when it has been sent.
    static let keptCapacity = 0
    /// The most unsent bytes with which TLS still answers its peer. The source of content stops at
    /// far fewer.
    private static let unsentAnswersMax = 1 << 20

    package final let peer: SocketAddress
    /// The TLS machine; `nil` for a plain connection.
    final var tls: TLSSession?
    /// The socket may have input, as far as is known.
    final var socketIsReadable = false
    /// The TLS machine may hold bytes that were decrypted and not read.
    final var mayHoldPlaintext = false
    /// A read would bring something, as far as is known.
    package final var isReadable: Bool { socketIsReadable || mayHoldPlaintext }
    /// The socket would accept a write, as far as is known.
    final var isWritable: Bool
    /// The peer closed its direction or the connection broke. So a short read does not empty the
    /// socket.
    package final var isEnding: Bool { endIsAnnounced }
    final var endIsAnnounced = false
    /// The errno with which a write found the connection broken; 0 while none did. The kernel
    /// reports a break once, to the first call that meets it: a read after that finds an end that
    /// looks orderly (SO_ERROR in socket(7)).
    final var breakCode: Int32 = 0
    private var isConnecting: Bool
    /// Bytes that the kernel did not take yet.
    @exclusivity(unchecked) final var unsent: [UInt8] = []
    @exclusivity(unchecked) final var unsentStart = 0

    /// Sends bytes before everything else, TLS included, as soon as the connection exists.
    package final func begin(with preface: [UInt8]) {
        guard !preface.isEmpty else { return }
        unsent = preface
        // A failure here occurs again with the first message.
        if isWritable { _ = flush() }
    }

    /// Whether the kernel has taken no byte since ``messageBegins()``.
    package final var sentNothing: Bool { !hasSent }
    final var hasSent = false

    /// Later bytes belong to another message.
    package final func messageBegins() { hasSent = false }

    /// Whether the peer gets a reset however the connection ends, also by the end of the process.
    package final var resetsOnClose: Bool {
        get { isReset }
        set {
            guard newValue != isReset else { return }
            isReset = newValue
            guard !isClosed else { return }
            if isReset {
                clinux_reset_on_close(descriptor)
            } else {
                clinux_end_on_close(descriptor)
            }
        }
    }
    private var isReset = false
    /// The output ends when the waiting bytes are sent.
    private var endsWhenSent = false

    /// The port of ``peer``, 0 without one, and the address of this end, from the kernel.
    package final var socketEnds: (peerPort: UInt16, own: SocketAddress) {
        (peer.port ?? 0, Listener.boundAddress(descriptor))
    }

    /// The user at the other end of a Unix socket when it connected, from the kernel; `nil` where
    /// it is not known.
    package final var peerUser: UInt32? {
        let user = clinux_peer_user(descriptor)
        return user < 0 ? nil : UInt32(truncatingIfNeeded: user)
    }

    /// The most bytes of one ``read()``. The user of the connection may take less than the event
    /// loop has room for.
    package final var inputMax: Int {
        get { wantedInputMax }
        set { wantedInputMax = newValue }
    }
    private final var wantedInputMax = EventLoop.inputBytes

    /// The number of bytes that wait in memory to be sent.
    package final var unsentBytes: Int { unsent.count - unsentStart }

    /// The number of bytes that the peer has still to take: those that wait here, and those that
    /// its system has not acknowledged.
    package final var untakenBytes: Int {
        isClosed ? 0 : unsentBytes + Int(clinux_unacknowledged(descriptor))
    }

    /// A connection that was accepted or is connecting. `isConnecting`: whether `connect` still
    /// runs.
    package init(
        descriptor: Int32,
        peer: SocketAddress,
        isConnecting: Bool,
        tls: TLSSession? = nil,
        on loop: EventLoop
    ) {
        self.peer = peer
        self.tls = tls
        self.isConnecting = isConnecting
        isWritable = !isConnecting
        super.init(descriptor: descriptor, on: loop)
    }

    /// Begins to connect.
    ///
    /// - Returns: the descriptor, and whether the connect still runs.
    /// - Throws: `SocketError` of socket or connect.
    package static func open(
        to address: SocketAddress
    ) throws(SocketError) -> (descriptor: Int32, isConnecting: Bool) {
        let descriptor = clinux_socket(address.family)
        guard descriptor >= 0 else { throw SocketError("socket") }
        setNoDelay(descriptor, address)
        if address.withKernelForm({ connect(descriptor, $0, $1) }) == 0 {
            return (descriptor, false)
        }
        // EAGAIN: a Unix listener's queue is full. It counts as a refusal.
        guard errno == EINPROGRESS else {
            let error = SocketError("connect")
            _ = Glibc.close(descriptor)
            throw error
        }
        return (descriptor, true)
    }

    /// Closes a descriptor that became no connection.
    package static func discard(_ descriptor: Int32) { _ = Glibc.close(descriptor) }

    /// Whether there is no input and no announced end, from the kernel.
    package final func isSilent() -> Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_PEEK)) < 0 && errno == EAGAIN
    }

    /// Small responses must not wait for an acknowledgement.
    package static func setNoDelay(_ descriptor: Int32, _ address: SocketAddress) {
        guard !address.isUnix else { return }
        clinux_set_no_delay(descriptor)
    }

    /// There is input, or the connection was resumed; read it now or later.
    open func inputReady() {}
    /// All bytes that waited were sent.
    open func outputDrained() {}
    /// The connect ended; `nil` for success.
    open func connectEnded(_ error: SocketError?) {}
    /// The peer has closed both directions, and this was not read yet: the owner waits for another
    /// event.
    open func brokeWhileUnread() {}
    /// The connection broke while bytes waited to be sent.
    open func outputFailed() {}

    override final var mayHaveTwins: Bool { false }

    override final func noted(_ events: UInt32) {
        if events & (clinux_in | clinux_ending) != 0 { socketIsReadable = true }
        if events & clinux_ending != 0 { endIsAnnounced = true }
    }

    override final func ready(_ events: UInt32) {
        if isConnecting, events & (clinux_out | clinux_ending) != 0 {
            isConnecting = false
            isWritable = true
            let code = clinux_socket_error(descriptor)
            // The waiting bytes are a preface: they are sent before the owner's own bytes.
            if code == 0, unsentBytes > 0 { _ = flush() }
            connectEnded(code == 0 ? nil : SocketError("connect", code: code))
            if code != 0 { return }
        } else if events & clinux_out != 0 {
            isWritable = true
            flushWaiting()
        }
        if !isClosed, isReadable || events & EventLoop.resumed != 0 { inputReady() }
        if events & clinux_broken != 0, !isClosed { brokeWhileUnread() }
    }

    /// Makes the next read ask the kernel: a failed write shows an event before epoll does.
    package final func expectInput() { socketIsReadable = true }

    /// Asks for ``inputReady()`` after the current event, when there may be input.
    package final func resumeReading() {
        if isReadable { loop.resume(self) }
    }

    private func flushWaiting() {
        guard unsentBytes > 0 else { return }
        switch flush() {
        case .sent:
            if endsWhenSent { shutDownOutput() }
            outputDrained()
        case .queued: break
        case .failed: outputFailed()
        }
    }

    /// Drops the connection so that the peer gets a reset, never an orderly end.
    package final func reset() {
        resetsOnClose = true
        close()
    }

    /// Ends the output; reading continues. Under TLS the last bytes may have to wait, and
    /// ``outputDrained()`` follows.
    package final func shutDownOutput() {
        guard !isClosed else { return }
        if let tls {
            tls.shutDown()
            // The kernel takes no byte after the end.
            if case .queued = sendCiphertext(of: tls, before: .end) {
                endsWhenSent = true
                return
            }
        }
        endsWhenSent = false
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }
}

// Reading bytes that stay in the kernel.
extension Connection {
    /// Reads the first bytes of the input, up to a number, and leaves them in the kernel.
    /// ``inputReady()`` follows when more have come. For a plain connection.
    package final func peek(_ max: Int) -> ReadOutcome {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: loop.input.prefix(max))
        var count = -1
        repeat {
            count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_PEEK))
        } while count < 0 && errno == EINTR
        socketIsReadable = false
        guard count > 0 else {
            if count == 0 { return .ended }
            return errno == EAGAIN ? .wouldBlock : .failed(.socket(SocketError("recv")))
        }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        return .bytes(bytes.assumingMemoryBound(to: UInt8.self))
    }

    /// Discards bytes that ``peek(_:)`` has returned.
    package final func skip(_ byteCount: Int) {
        // They are there, so one call takes all of them.
        let buffer = loop.input.prefix(byteCount)
        while recv(descriptor, buffer.base.baseAddress, buffer.count, 0) < 0, errno == EINTR {}
    }
}

extension Connection {
    /// Reads once into the event loop's input buffer.
    package final func read() -> ReadOutcome {
        guard isReadable, !isClosed else { return .wouldBlock }
        guard let tls else { return receive(input) }
        return read(through: tls)
    }

    /// The event loop's memory for input, up to ``inputMax``.
    private var input: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: loop.input.prefix(inputMax))
    }

    final func receive(_ buffer: UnsafeMutableRawBufferPointer) -> ReadOutcome {
        let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        if count > 0 {
            loop.inputCount += count
            // A short read empties the socket; later input is a new edge. An end that was already
            // announced is not announced again.
            if count < buffer.count, !isEnding { socketIsReadable = false }
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            return .bytes(bytes.assumingMemoryBound(to: UInt8.self))
        }
        if count == 0 {
            guard breakCode != 0 else { return .ended }
            return .failed(.socket(SocketError("recv", code: breakCode)))
        }
        switch errno {
        case EAGAIN:
            socketIsReadable = false
            return .wouldBlock
        case EINTR: return receive(buffer)
        default: return .failed(.socket(SocketError("recv")))
        }
    }

    /// First the decrypted bytes that are already there, then one read from the socket.
    private func read(through tls: TLSSession) -> ReadOutcome {
        let isEmpty = tls.isEstablished && !mayHoldPlaintext
        var outcome = isEmpty ? TLSSession.ReadOutcome.needsInput : tls.read(into: input)
        while true {
            switch outcome {
            case .bytes(let count):
                mayHoldPlaintext = tls.mayHoldPlaintext
                if tls.hasAnswered, let error = sendAnswers(of: tls) { return .failed(error) }
                let bytes = UnsafeRawBufferPointer(rebasing: input[..<count])
                return .bytes(bytes.assumingMemoryBound(to: UInt8.self))
            case .needsInput: mayHoldPlaintext = false
            case .closed:
                mayHoldPlaintext = true
                return .ended
            case .failed(let error):
                _ = sendCiphertext(of: tls)
                return .failed(.tls(error))
            }
            if tls.hasCiphertext, let error = sendAnswers(of: tls) { return .failed(error) }
            switch receive(loop.ciphertextInput) {
            case .bytes(let bytes): outcome = tls.read(into: input, feeding: bytes.span)
            case .wouldBlock: return .wouldBlock
            case .ended: return .failed(.truncated)
            case .failed(let error): return .failed(error)
            }
        }
    }

    /// Sends answers of TLS itself, which the peer causes as it likes; returns why that failed.
    private func sendAnswers(of tls: TLSSession) -> ConnectionError? {
        guard unsentBytes <= Self.unsentAnswersMax else { return .tls(.untaken) }
        guard case .failed(let error) = sendCiphertext(of: tls) else { return nil }
        return error
    }
}

// Hand-over of a connection whose client speaks another protocol.
extension Connection {
    /// Whether TLS has negotiated HTTP/2 (RFC 9113 §3.2).
    package final var hasAgreedHTTP2: Bool { tls?.applicationProtocol == TLSContext.http2 }

    /// Makes another connection continue with the socket. This one is then closed, without an event
    /// for its owner.
    ///
    /// - make: makes the successor, of the same descriptor and TLS session.
    package final func handOver<Successor: Connection>(
        to make: (Int32, TLSSession?) -> Successor
    ) -> Successor {
        let successor = make(descriptor, tls)
        successor.socketIsReadable = true
        successor.mayHoldPlaintext = tls != nil
        successor.isWritable = isWritable
        successor.endIsAnnounced = endIsAnnounced
        swap(&successor.unsent, &unsent)
        swap(&successor.unsentStart, &unsentStart)
        give(to: successor)
        return successor
    }
}

/// Why a connection can't go on.
package enum ConnectionError: Error {
    /// A system call failed.
    case socket(SocketError)
    /// The TLS machine refused the peer's bytes.
    case tls(TLSFailure)
    /// The TLS machine did not accept bytes to send.
    case tlsWrite
    /// The peer ended a TLS connection without close_notify: the read bytes may be incomplete.
    case truncated
    /// This side closed it.
    case closed
}
