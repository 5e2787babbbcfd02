import DequeModule
import EventLoops
import HTTPWire

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
    var head = ResponseHead()
    let limits = HeadLimits()
    let method: HTTPWire.Method
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

    func connected(_ connection: LoadConnection) {
        idle.append(connection)
        owner?.work()
    }

    func answered(_ connection: LoadConnection) {
        owner?.answered(connection)
        if connection.isClosed { ended() } else { idle.append(connection) }
        owner?.work()
    }

    /// The server has closed an idle connection.
    func retired(_ connection: LoadConnection) {
        idle.removeAll { $0 === connection }
        ended()
    }

    func failed(_ connection: LoadConnection, _ failure: ExchangeFailure) {
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
