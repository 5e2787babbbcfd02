import DequeModule
import Encodings
import EventLoops
import HTTPWire
import Rules

/// The user of a pool of connections.
protocol ConnectionOwner: AnyObject {
    /// The answer to the connection's request is complete.
    func answered(_ connection: LoadConnection)
    /// The connection is closed: its request, or the attempt to connect, has failed.
    ///
    /// - connection: `nil` when the system refused at once.
    func failed(_ connection: LoadConnection?, _ failure: ExchangeFailure, in pool: ConnectionPool)
    /// A connection may be free now.
    func work()
}

/// Connections of an event loop to one gateway, opened again when they end.
final class ConnectionPool {
    /// Connections that wait for work; the one that has waited longest is taken.
    var idle: Deque<LoadConnection> = []
    /// Keeps the content of every answer, not only of refusals and of what was created.
    let keepsContent: Bool
    /// Missing connections are opened without a call.
    var isRefilling: Bool
    /// A cycle on purpose: pool and owner live as long as their event loop.
    var owner: (any ConnectionOwner)?
    let server: ServerPlace
    let loop: EventLoop
    let count: Int
    let responseTimeout: UInt64
    /// Memory into which all connections read heads.
    fileprivate var head = ResponseHead()
    fileprivate let limits = HeadLimits()
    fileprivate let method: HTTPWire.Method
    /// Milliseconds that an attempt to connect may take.
    var connectTimeout: UInt64 = 3_000
    private(set) var openCount = 0
    private var reopenAt: UInt64 = 0

    /// Nanoseconds between attempts that the gateway refuses.
    static let pause: UInt64 = 200_000_000

    /// For requests of a run.
    ///
    /// - timeout: milliseconds that an answer may take.
    init(_ plan: LoadPlan, count: Int, on loop: EventLoop) {
        (server, self.loop, self.count) = (plan.server, loop, count)
        responseTimeout = plan.options.responseTimeout
        // An answer to HEAD has no content.
        method = plan.request.method == "HEAD" ? .head : .other
        (keepsContent, isRefilling) = (false, true)
    }

    /// For calls of the gateway's endpoints.
    init(callsTo server: ServerPlace, count: Int, timeout: UInt64, on loop: EventLoop) {
        (self.server, self.loop, self.count, responseTimeout) = (server, loop, count, timeout)
        method = .other
        (keepsContent, isRefilling) = (true, count > 1)
    }

    var isComplete: Bool { idle.count == count }

    /// Opens missing connections, with a pause after the gateway has refused one.
    func fill() {
        while openCount < count, MonotonicClock.nanoseconds >= reopenAt { open() }
    }

    private func open() {
        do {
            let tls = try server.session()
            let opened = try Connection.open(to: server.address)
            let connection = LoadConnection(opened, tls, in: self)
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
            connectFailed(nil, .connectFailed)
        }
    }

    private func connectFailed(_ connection: LoadConnection?, _ failure: ExchangeFailure) {
        reopenAt = MonotonicClock.nanoseconds + Self.pause
        owner?.failed(connection, failure, in: self)
    }

    func closeAll() {
        isRefilling = false
        for connection in idle { connection.close() }
        idle.removeAll()
    }

    fileprivate func connected(_ connection: LoadConnection) {
        idle.append(connection)
        owner?.work()
    }

    fileprivate func answered(_ connection: LoadConnection) {
        owner?.answered(connection)
        if connection.isClosed { ended() } else { idle.append(connection) }
        owner?.work()
    }

    /// The server has closed an idle connection.
    fileprivate func retired(_ connection: LoadConnection) {
        idle.removeAll { $0 === connection }
        ended()
    }

    fileprivate func failed(_ connection: LoadConnection, _ failure: ExchangeFailure) {
        if failure.isOfConnect {
            openCount -= 1
            connectFailed(connection, failure)
        } else {
            owner?.failed(connection, failure, in: self)
            ended()
        }
        owner?.work()
    }

    private func ended() {
        openCount -= 1
        if isRefilling { fill() }
    }
}

/// A client's connection to the gateway: one request, then its answer.
final class LoadConnection: Connection {
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
    let pool: ConnectionPool
    /// The current request.
    private(set) var message = Message()
    private(set) var request = LoadRequest()
    private(set) var answer = Answer()

    private var state = State.connecting
    private var inbox: [UInt8] = []
    private var scanner = HeadScanner(.response)
    private var body = BodyReader(.none, limits: HeadLimits())
    private var hasHead = false
    private var isPersistent = false

    fileprivate init(
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

    /// Sends a message; the owner gets the answer or the reason why none came.
    func send(_ message: Message, for request: LoadRequest) {
        (self.message, self.request) = (message, request)
        state = .busy
        hasHead = false
        answer.clear()
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
        pool.connected(self)
    }

    private func fail(_ failure: ExchangeFailure) {
        state = .closed
        close()
        pool.failed(self, failure)
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
            pool.retired(self)
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
            while let range = try scanner.nextResponse(
                in: bytes,
                from: &start,
                into: &pool.head,
                to: pool.method,
                upgradeSent: false,
                limits: pool.limits,
                keeping: &inbox
            ) {
                guard pool.head.isInterim else {
                    inbox.removeAll(keepingCapacity: true)
                    hasHead = true
                    answer.status = pool.head.status
                    answer.read(pool.head.fields, bytes.extracting(range))
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
        let isKept = pool.keepsContent || answer.status != 200
        do throws(Malformed) {
            while true {
                switch try body.read(bytes, from: &position) {
                case .content(let range):
                    if isKept { answer.keep(bytes.extracting(range)) }
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
        if !isReusable { close() }
        pool.answered(self)
    }
}

/// The facts about a connection's request by which its answer is judged.
struct LoadRequest {
    var sending = Sending.good
    /// The number of the request on its event loop.
    var number: UInt64 = 0
    /// The device that is busy with it.
    var device: Int?
    /// The place in the rollout of the key that has signed it; `nil` where that does not matter.
    var bucket: Bucket?
    /// When the request was due, and when it was sent: nanoseconds of the monotonic clock.
    var due: UInt64 = 0
    var sentAt: UInt64 = 0
}

/// The answer to a request; its memory is used again.
struct Answer {
    var status = 0
    /// The value of App-Attest-Challenge; empty for none.
    var challenge: [UInt8] = []
    /// Seconds of Retry-After, a day at most; 0 for none.
    var retryAfter = 0
    /// The content of a refusal or of a call to an endpoint, up to the bound below.
    var content: [UInt8] = []

    /// The most bytes that are kept.
    private static let contentMax = 16 << 10
    private static let reasonStart = Array("\"reason\":\"".utf8)

    mutating func clear() {
        status = 0
        challenge.removeAll(keepingCapacity: true)
        retryAfter = 0
        content.removeAll(keepingCapacity: true)
    }

    mutating func keep(_ bytes: Span<UInt8>) {
        guard content.count + bytes.count <= Self.contentMax else { return }
        bytes.withUnsafeBufferPointer { content.append(contentsOf: $0) }
    }

    /// The origin has answered, or the gateway has served its own endpoint.
    var isAdmission: Bool { status >= 200 && status < 400 }

    /// The value of `reason` in a problem document of the gateway. It is searched, not parsed,
    /// since each refusal needs it.
    var reason: ArraySlice<UInt8>? {
        let start = Self.reasonStart
        guard content.count > start.count else { return nil }
        for place in 0...(content.count - start.count)
        where content[place] == start[0] && content[place...].starts(with: start) {
            return content[(place + start.count)...].prefix { $0 != UInt8(ascii: "\"") }
        }
        return nil
    }

    /// The reason for people; the status alone where the answer gives no reason.
    var text: String {
        reason.map { "\(status) \(String(decoding: $0, as: UTF8.self))" } ?? "\(status)"
    }

    mutating func read(_ section: borrowing FieldSection, _ bytes: Span<UInt8>) {
        if let value = section.value(of: "app-attest-challenge", bytes) {
            bytes.extracting(value).withUnsafeBufferPointer { challenge.append(contentsOf: $0) }
        }
        if let value = section.value(of: "retry-after", bytes) {
            retryAfter = value.reduce(0) { min($0 * 10 + Int(bytes[$1] & 15), 86_400) }
        }
    }
}
