import EventLoops
import HTTPWire
import Verification

/// One request on an HTTP/1 connection, and its response.
final class HTTP1Stream {
    let connection: HTTP1Connection
    /// The request; `nil` when it is over.
    var owner: (any ClientStreamOwner)?
    /// The reason that the owner gets when the connection is closed.
    var end = ClientEnd.aborted

    /// What follows the response on the connection.
    private enum Sequel {
        /// The next request. Leaves to `skip`, `linger`.
        case request
        /// The next request, after the rest of the content was read and discarded. Leaves to
        /// `linger`.
        case skip
        /// The end at once: this request without content is the client's last, as it has said.
        case end
        /// The end, after further input was read and discarded.
        case linger
    }

    /// The most content of a refused request, in bytes, that is read and discarded for the sake of
    /// the connection. More costs a client more than a new connection does.
    private static let skippedBytesMax: UInt64 = 64 << 10

    // The request.
    let version: HTTPVersion
    let isHead: Bool
    private var sequel: Sequel
    var awaitsContinue: Bool
    @exclusivity(unchecked) var body: BodyReader
    /// The count of content bytes when the time for content began. The client's rate is measured
    /// from it.
    private var countAtDeadline: UInt64 = 0

    // The response.
    @exclusivity(unchecked) var out = OutgoingContent()
    /// Whether `out` has the event loop's memory.
    var isGathering = false
    /// The response is complete: nothing can be added.
    var isAnswered = false
    /// The result of sending since the last ``flush()``; `closed` when it failed.
    var output = ClientOutput.sent
    /// Whether bytes were sent since the wait for the response was last bounded.
    var hasSent = false

    init(
        _ head: borrowing RequestHead,
        on connection: HTTP1Connection,
        _ settings: ProxySettings,
        isMalformed: Bool
    ) {
        self.connection = connection
        version = head.version
        isHead = !isMalformed && head.method == .head
        let mayPersist =
            switch head.version {
            case .http11: true
            case .http10: settings.options.keepsOldClients
            }
        awaitsContinue = !isMalformed && head.expectsContinue
        let framing = isMalformed ? BodyFraming.none : head.framing
        sequel =
            switch (isMalformed, head.isPersistent) {
            case (false, true) where mayPersist: .request
            case (false, false) where framing == .none: .end
            case (_, _): .linger
            }
        body = BodyReader(framing, limits: settings.limits.requestHead)
    }

    func closed() { leave()?.clientClosed(end) }

    /// The client's content did not come in time.
    func contentTimedOut() {
        let settings = connection.host.settings
        let brought = body.contentCount - countAtDeadline
        guard settings.timeouts.isTooLittle(brought: brought) else { return awaitContent() }
        owner?.contentTimedOut()
    }

    @discardableResult
    func leave() -> (any ClientStreamOwner)? {
        defer { owner = nil }
        return owner
    }
}

extension HTTP1Stream: ClientStream {
    var peer: ClientPeer { connection.client }
    var peerUser: UInt32? { peer.isUnix ? connection.peerUser : nil }
    var socketEnds: (peerPort: UInt16, own: SocketAddress) { connection.socketEnds }
    var spoken: ClientProtocol {
        switch version {
        case .http10: .http10
        case .http11: .http11
        }
    }
    var flow: Int { connection.flow }

    // MARK: The request's content

    var contentFraming: BodyFraming { body.framing }
    var contentCount: UInt64 { body.contentCount }
    var isContentComplete: Bool { body.isFinished }
    var hasContent: Bool { !body.isFinished && !connection.inbox.isEmpty }

    var hasWholeContent: Bool {
        guard case .length(let length) = body.framing else { return false }
        return length <= UInt64(connection.inbox.count)
    }

    func takeWholeContent(max: UInt64) -> [UInt8]? {
        guard hasWholeContent, !body.isFinished, body.contentCount == 0,
            case .length(let length) = body.framing, length <= max
        else { return nil }
        // The length is at most that of the inbox.
        let count = Int(length)
        body.finishLength()
        if connection.inbox.count == count {
            defer { connection.inbox = [] }
            return connection.inbox
        }
        defer { connection.inbox.removeFirst(count) }
        return Array(connection.inbox[..<count])
    }

    func dropContent() -> Bool {
        guard isPersistent else { return body.isFinished }
        let bytes = connection.inbox
        connection.inbox = []
        return skip(bytes.span) || skipRest()
    }

    /// Lets the rest of the content be discarded as it comes, if it is little. A client that
    /// expects `100 Continue` may send none of it (RFC 9110 §10.1.1).
    private func skipRest() -> Bool {
        guard !awaitsContinue, let rest = body.expectedCount, rest <= Self.skippedBytesMax else {
            return false
        }
        sequel = .skip
        return true
    }

    /// Discards content of a request that is answered.
    ///
    /// - Returns: whether that was the rest of it. What follows is the next request.
    func skip(_ bytes: Span<UInt8>) -> Bool {
        if case .complete = decode(bytes, { _ in true }) { true } else { false }
    }

    func readContent(_ take: (Span<UInt8>) -> Bool) -> ContentRead {
        guard owner != nil else { return .closed }
        guard !body.isFinished else { return .complete }
        if !connection.inbox.isEmpty {
            let bytes = connection.inbox
            connection.inbox = []
            return decode(bytes.span, take)
        }
        switch connection.read() {
        case .bytes(let bytes): return decode(bytes.span, take)
        case .wouldBlock: return .none
        case .ended, .failed:
            // RFC 9112 §8: an incomplete request must not look complete to the origin.
            connection.close()
            return .closed
        }
    }

    /// Takes bytes of the connection: content up to its end, then the next request.
    private func decode(_ bytes: Span<UInt8>, _ take: (Span<UInt8>) -> Bool) -> ContentRead {
        var position = 0
        do throws(Malformed) {
            reading: while true {
                switch try body.read(bytes, from: &position) {
                case .content(let range):
                    guard take(bytes.extracting(range)) else { return .stopped }
                case .needMore: return .some
                case .finished: break reading
                }
            }
        } catch {
            return .malformed(error.reason)
        }
        if position < bytes.count {
            let rest = bytes.extracting(droppingFirst: position)
            connection.inbox = rest.withUnsafeBufferPointer { Array($0) }
        }
        return .complete
    }

    func resumeReading() { connection.resumeReading() }

    func awaitContent() {
        countAtDeadline = body.contentCount
        connection.setDeadline(milliseconds: connection.host.settings.timeouts.bodyIdle)
    }

    func expectNothing() { connection.expectNothing() }

    func stopDeadline() { connection.setDeadline(milliseconds: nil) }

    // MARK: The end

    func endAfterResponse() { if isPersistent { sequel = .linger } }

    /// Whether the connection takes another request after this one.
    var isPersistent: Bool {
        switch sequel {
        case .request, .skip: true
        case .end, .linger: false
        }
    }

    /// Whether content follows the response that is not read.
    var leavesContent: Bool { if case .skip = sequel { false } else { !body.isFinished } }

    func finish() {
        guard leave() != nil else { return }
        switch sequel {
        case .request where body.isFinished: connection.takeNext()
        case .skip: connection.skip(self)
        case .end: endBehindLast()
        case .request, .linger: connection.linger()
        }
    }

    /// Ends the connection after the response to a client that sends nothing more (RFC 9112 §9.6:
    /// after `close` it must not). A reset would only answer later or unread bytes. So waiting for
    /// the client's end would be two system calls without a benefit.
    ///
    /// The output is shut down before the close, though a close would end it too. If bytes of the
    /// client are unread, a close drops the response that the kernel has kept for the end
    /// (``Connection/Sequel/end``).
    ///
    /// Under TLS a client may announce its end before it has read the response. The kernel takes
    /// that for data: if it is unread, the close becomes a reset. So the gateway checks the
    /// kernel's input. Bytes that a client sends after the response show that it has read the
    /// response.
    private func endBehindLast() {
        guard connection.unsentBytes == 0, connection.inbox.isEmpty, !connection.isReadable,
            !peer.isSecure || connection.isSilent()
        else { return connection.linger() }
        connection.resetsOnClose = false
        connection.shutDownOutput()
        connection.close()
    }

    func pause() { connection.pause() }

    /// Some clients take a response for whole if its connection ends in order. A reset is clear to
    /// all of them. But it also drops an earlier response that the client has not read (RFC 9112
    /// §9.6). So a client that pipelines gets an orderly end where length or chunks show that the
    /// response is cut.
    func reset() {
        guard connection.isPipelined, out.framing != .untilClose else { return connection.reset() }
        closed()
        connection.linger()
    }

    func close() { connection.close() }
}
