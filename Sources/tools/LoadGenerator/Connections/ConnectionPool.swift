import DequeModule
import EventLoops
import HTTPWire

/// Connections of an event loop to one gateway, opened again when they end.
final class ConnectionPool {
    /// Exchanges that wait for work; the one that has waited longest is taken.
    var idle: Deque<LoadExchange> = []
    /// Exchanges whose request the gateway has refused without processing it.
    private var refused: Deque<LoadExchange> = []
    /// How many requests were sent again after that.
    private(set) var resentCount: UInt64 = 0
    /// Keeps the content of every answer, not only of refusals and of what was created.
    let keepsContent: Bool
    /// Missing connections are opened without a call.
    var isRefilling: Bool
    /// A cycle on purpose: pool and owner live as long as their event loop.
    var owner: (any ConnectionOwner)?
    let server: ServerPlace
    let loop: EventLoop
    private let count: Int
    /// Exchanges of one connection.
    private let streams: Int
    let responseTimeout: UInt64
    /// Memory into which all connections read heads.
    var head = ResponseHead()
    let limits = HeadLimits()
    let method: HTTPWire.Method
    /// Milliseconds that an attempt to connect may take.
    var connectTimeout: UInt64 = 3_000
    /// Connections that are open or being opened, and those that take requests.
    private(set) var openCount = 0
    private var madeCount = 0
    private var reopenAt: UInt64 = 0

    /// Nanoseconds between attempts that the gateway refuses.
    static let pause: UInt64 = 200_000_000
    /// How often a request is sent whose stream is refused (RFC 9113 §8.7).
    private static let attemptsMax = 3

    /// For requests of a run.
    init(_ plan: LoadPlan, count: Int, on loop: EventLoop) {
        (server, self.loop, self.count) = (plan.server, loop, count)
        streams = plan.server.version.streams
        responseTimeout = plan.options.responseTimeout
        // An answer to HEAD has no content.
        method = plan.request.method == "HEAD" ? .head : .other
        (keepsContent, isRefilling) = (false, true)
    }

    /// For calls of the gateway's endpoints, each connection with one at a time.
    ///
    /// - timeout: milliseconds that an answer may take.
    init(callsTo server: ServerPlace, count: Int, timeout: UInt64, on loop: EventLoop) {
        (self.server, self.loop, self.count, responseTimeout) = (server, loop, count, timeout)
        (method, streams) = (.other, 1)
        (keepsContent, isRefilling) = (true, count > 1)
    }

    var isComplete: Bool { madeCount == count }

    /// The most requests that may be under way together.
    var exchangesMax: Int { count * streams }

    /// Opens missing connections, with a pause after the gateway has refused one.
    func fill() {
        while openCount < count, MonotonicClock.nanoseconds >= reopenAt { open() }
    }

    private func open() {
        do {
            let tls = try server.session()
            let opened = try Connection.open(to: server.address)
            let connection = try make(opened, tls)
            do {
                try loop.register(connection)
            } catch {
                connection.close()
                throw error
            }
            openCount += 1
            connection.setDeadline(milliseconds: connectTimeout)
            if !opened.isConnecting { loop.resume(connection) }
        } catch {
            failedToOpen(.connectFailed)
        }
    }

    private func make(
        _ opened: (descriptor: Int32, isConnecting: Bool),
        _ tls: TLSSession?
    ) throws(HTTP2End.Fault) -> Connection {
        guard case .http2 = server.version else {
            return HTTP1LoadConnection(opened, tls, in: self)
        }
        do throws(HTTP2End.Fault) {
            let session = try HTTP2ClientSession(HTTP2Limits(), isSecure: tls != nil)
            return HTTP2LoadConnection(session, over: opened, tls, streams: streams, in: self)
        } catch {
            Connection.discard(opened.descriptor)
            throw error
        }
    }

    private func failedToOpen(_ failure: ExchangeFailure) {
        reopenAt = MonotonicClock.nanoseconds + Self.pause
        owner?.failed(nil, failure, in: self)
        while let exchange = refused.popFirst() { failed(exchange, .streamRefused) }
    }

    func closeAll() {
        isRefilling = false
        // The end of a connection is that of its other exchanges, too.
        for exchange in idle where exchange.isUsable { exchange.close() }
        idle.removeAll()
    }
}

// What connections report.
extension ConnectionPool {
    /// A connection takes requests.
    func connected(_ exchanges: [LoadExchange]) {
        madeCount += 1
        idle.append(contentsOf: exchanges)
        proceed()
    }

    /// A connection could not be made. It is closed.
    func failedToConnect(_ failure: ExchangeFailure) {
        openCount -= 1
        failedToOpen(failure)
        owner?.work()
    }

    func answered(_ exchange: LoadExchange) {
        owner?.answered(exchange)
        release(exchange)
    }

    func failed(_ exchange: LoadExchange, _ failure: ExchangeFailure) {
        owner?.failed(exchange, failure, in: self)
        release(exchange)
    }

    /// The gateway has not processed a request, and says so: it is sent again.
    func wasRefused(_ exchange: LoadExchange) {
        guard exchange.request.attempts < Self.attemptsMax else {
            return failed(exchange, .streamRefused)
        }
        // Otherwise exchanges could wait for each other.
        if exchange.isUsable { return resend(exchange, on: exchange) }
        refused.append(exchange)
        proceed()
    }

    private func resend(_ exchange: LoadExchange, on free: LoadExchange) {
        resentCount += 1
        var request = exchange.request
        request.attempts += 1
        free.send(exchange.message, for: request)
    }

    /// A connection takes no more requests: some of its exchanges may still be busy.
    ///
    /// They are marked as not usable.
    func retired() {
        idle.removeAll { !$0.isUsable }
        openCount -= 1
        madeCount -= 1
        if isRefilling { fill() }
        proceed()
    }

    private func release(_ exchange: LoadExchange) {
        if exchange.isUsable { idle.append(exchange) }
        proceed()
    }

    /// Sends what was refused, then what the owner has.
    private func proceed() {
        while let exchange = refused.first {
            guard let free = idle.popFirst() else {
                fill()
                break
            }
            refused.removeFirst()
            resend(exchange, on: free)
        }
        owner?.work()
    }
}
