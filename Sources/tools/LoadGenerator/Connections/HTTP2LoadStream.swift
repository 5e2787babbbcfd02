import EventLoops
import HTTPWire

/// One request at a time on a connection of HTTP/2. Each has a new stream.
final class HTTP2LoadStream: ExchangeCarrier {
    private unowned let connection: HTTP2LoadConnection
    private(set) lazy var exchange = LoadExchange(on: self, in: pool)
    /// The stream of the current request; `nil` without one.
    private var channel: HTTP2ClientChannel?
    /// When its answer has to be complete; milliseconds of ``EventLoop/now``.
    private(set) var deadline: UInt64?
    private var hasHead = false

    init(on connection: HTTP2LoadConnection) { self.connection = connection }

    private var pool: ConnectionPool { connection.pool }
    private var session: HTTP2ClientSession { connection.session }

    func send(_ exchange: LoadExchange) {
        hasHead = false
        let message = exchange.message
        let until = connection.loop.now + pool.responseTimeout
        deadline = until
        channel = session.begin(
            message.head.span,
            isHead: pool.method == .head,
            hasContent: !message.body.isEmpty
        )
        guard let channel else { return connection.couldNotBegin(self) }
        channel.owner = self
        if !message.body.isEmpty {
            session.append(message.body.span, to: channel)
            session.complete(channel)
        }
        connection.began(deadline: until)
    }

    /// The session has taken no request.
    func reportUnsent() { finish { pool.wasRefused($0) } }

    func close() { connection.end(.noError) }

    /// No answer came in time.
    func timeOut() {
        if let channel { session.reset(channel, .cancel) }
        finish { pool.failed($0, .responseTimeout) }
    }

    /// Ends the request, then has the pool continue.
    private func finish(_ report: (LoadExchange) -> Void) {
        channel?.owner = nil
        (channel, deadline) = (nil, nil)
        report(exchange)
    }

    private func fail(_ channel: HTTP2ClientChannel, _ failure: ExchangeFailure) {
        if channel.end == nil { session.reset(channel, .cancel) }
        finish { pool.failed($0, failure) }
    }
}

// The answer.
extension HTTP2LoadStream: HTTP2ChannelOwner {
    func channelChanged() {
        guard let channel else { return }
        while !hasHead, let built = channel.takeHead() {
            guard built.fault == nil, read(built.bytes.span) else {
                return fail(channel, .responseMalformed)
            }
        }
        let content = session.takeContent(of: channel, atMost: .max)
        if pool.keepsContent || exchange.answer.status != 200 { exchange.answer.keep(content.span) }
        if hasHead, channel.isInputEnded {
            // The gateway may answer before it has read all content.
            if channel.end == nil, !channel.isOutputSent { session.reset(channel, .cancel) }
            return finish { pool.answered($0) }
        }
        switch channel.end {
        case nil: break
        case .refused: finish { pool.wasRefused($0) }
        case .reset: fail(channel, .streamReset)
        case .inOrder, .invalid: fail(channel, .responseMalformed)
        case .lost: fail(channel, .connectionBroken)
        }
    }

    /// Reads a head; `false` for a malformed one. Interim heads are skipped.
    private func read(_ bytes: Span<UInt8>) -> Bool {
        do throws(Malformed) {
            try pool.head.read(bytes, to: pool.method, upgradeSent: false, limits: pool.limits)
        } catch {
            return false
        }
        guard !pool.head.isInterim else { return true }
        hasHead = true
        exchange.answer.status = pool.head.status
        exchange.answer.read(pool.head.fields, bytes)
        return true
    }
}
