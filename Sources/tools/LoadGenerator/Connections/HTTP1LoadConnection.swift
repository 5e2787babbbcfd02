import EventLoops
import HTTPWire

/// A client's connection of HTTP/1.1 to the gateway: one request, then its answer.
final class HTTP1LoadConnection: Connection, ExchangeCarrier {
    private enum State {
        /// Leaves to `idle`, `closed`.
        case connecting
        /// Leaves to `busy`, `closed`.
        case idle
        /// Leaves to `idle`, `closed`.
        case busy
        /// Has no exit.
        case closed
    }

    /// Kept while the connection is open: a late event finds it.
    private let pool: ConnectionPool
    /// The only one.
    private lazy var exchange = LoadExchange(on: self, in: pool)

    private var state = State.connecting
    private var inbox: [UInt8] = []
    private var scanner = HeadScanner(.response)
    private var body = BodyReader(.none, limits: HeadLimits())
    private var hasHead = false
    private var isPersistent = false

    init(
        _ opened: (descriptor: Int32, isConnecting: Bool),
        _ tls: TLSSession?,
        in pool: ConnectionPool
    ) {
        self.pool = pool
        super.init(
            descriptor: opened.descriptor,
            peer: pool.server.address,
            isConnecting: opened.isConnecting,
            tls: tls,
            on: pool.loop
        )
    }

    func send(_ exchange: LoadExchange) {
        let message = exchange.message
        state = .busy
        hasHead = false
        setDeadline(milliseconds: pool.responseTimeout)
        // A server that answers early stops reading; its answer is still to be read.
        if case .failed = write(message.head.span, message.body.span) { outputFailed() }
    }

    override func outputFailed() {
        expectInput()
        loop.resume(self)
    }

    private func becomeIdle() {
        guard case .connecting = state else { return }
        state = .idle
        setDeadline(milliseconds: nil)
        pool.connected([exchange])
    }

    private func fail(_ failure: ExchangeFailure) {
        state = .closed
        close()
        if failure.isOfConnect { return pool.failedToConnect(failure) }
        exchange.isUsable = false
        pool.failed(exchange, failure)
        pool.retired()
    }

    override func connectEnded(_ error: SocketError?) {
        if error != nil { fail(.connectFailed) } else { becomeIdle() }
    }

    override func deadlinePassed() {
        switch state {
        case .connecting: fail(.connectTimeout)
        case .busy: fail(.responseTimeout)
        case .idle, .closed: break
        }
    }

    override func inputReady() {
        switch state {
        case .connecting: becomeIdle()
        case .idle:
            // RFC 9112 §9.2: data without a request is no response. An end is an end. TLS may bring
            // tickets, which have no bytes.
            if case .wouldBlock = read() { return }
            state = .closed
            close()
            exchange.isUsable = false
            pool.retired()
        case .busy: readAnswer()
        case .closed: break
        }
    }

    private func readAnswer() {
        while case .busy = state {
            switch read() {
            case .bytes(let bytes):
                if hasHead {
                    take(bytes.span, from: 0)
                } else if inbox.isEmpty {
                    takeHead(bytes.span)
                } else {
                    inbox.append(contentsOf: bytes)
                    let all = inbox
                    takeHead(all.span)
                }
            case .wouldBlock: return
            case .ended:
                guard hasHead, (try? body.close()) != nil else { return fail(.connectionBroken) }
                finish(isReusable: false)
            case .failed: return fail(.connectionBroken)
            }
        }
    }

    /// Skips interim responses.
    private func takeHead(_ bytes: Span<UInt8>) {
        var start = 0
        do throws(Malformed) {
            while let range = try scanner.next(
                in: bytes,
                from: &start,
                limits: pool.limits,
                keeping: &inbox
            ) {
                let head = bytes.extracting(range)
                try pool.head.read(head, to: pool.method, upgradeSent: false, limits: pool.limits)
                guard pool.head.isInterim else {
                    inbox.removeAll(keepingCapacity: true)
                    hasHead = true
                    exchange.answer.status = pool.head.status
                    exchange.answer.read(pool.head.fields, head)
                    isPersistent = pool.head.isPersistent
                    body = BodyReader(pool.head.framing, limits: pool.limits)
                    return take(bytes, from: start)
                }
            }
        } catch {
            fail(.responseMalformed)
        }
    }

    private func take(_ bytes: Span<UInt8>, from start: Int) {
        var position = start
        let isKept = pool.keepsContent || exchange.answer.status != 200
        do throws(Malformed) {
            while true {
                switch try body.read(bytes, from: &position) {
                case .content(let range):
                    if isKept { exchange.answer.keep(bytes.extracting(range)) }
                case .needMore: return
                case .finished: return finish(isReusable: isPersistent && position == bytes.count)
                }
            }
        } catch {
            fail(.responseMalformed)
        }
    }

    /// A request that was not sent to its end makes the connection useless.
    private func finish(isReusable: Bool) {
        setDeadline(milliseconds: nil)
        let isReusable = isReusable && unsentBytes == 0
        state = isReusable ? .idle : .closed
        exchange.isUsable = isReusable
        if !isReusable { close() }
        pool.answered(exchange)
        if !isReusable { pool.retired() }
    }
}
