import EventLoops
import Glibc
import HTTPWire
import Telemetry

/// The requests that share connections of HTTP/2 to a server.
///
/// A server that can't take a request may end its connection, and every request that is under way
/// there with it: nginx does so for a field of more than 8 KiB, Tomcat for content in many small
/// frames. So a request that has proved itself shares no connection with a stranger's, and one with
/// a large head none with others.
enum SharingGroup: Int, CaseIterable {
    /// Also the gateway's own connects.
    case usual
    case proven
    case largeHead
    case provenLargeHead

    /// The bytes of the largest head that is not large, as for HTTP/1.1: the least that servers
    /// take for one field.
    private static let usualHeadMax = 8 << 10

    /// - headCount: bytes of the request's head.
    init(isProven: Bool, headCount: Int) {
        self =
            switch (isProven, headCount > Self.usualHeadMax) {
            case (false, false): .usual
            case (true, false): .proven
            case (false, true): .largeHead
            case (true, true): .provenLargeHead
            }
    }
}

/// The HTTP/2 connections of one event loop to one server for the requests of a group, and those of
/// them that wait for a stream.
///
/// A connection is made when no other has a free stream, one at a time. Requests take the first
/// connection with a free stream, so that few are used and the others can time out.
final class SharedConnections {
    private unowned let server: OriginServer
    private let settings: OriginHTTP2
    private let loop: EventLoop
    /// It owns the pools, and lives longer.
    private unowned let host: any OriginHost
    /// Milliseconds; a reload may change it.
    var connectTimeout: UInt64 = 0
    /// The most requests that wait while all connections are full; a reload may change it.
    var lineMax = 0
    /// Those that take requests.
    @exclusivity(unchecked) private var open: [HTTP2OriginConnection] = []
    private var making: HTTP2OriginConnection?
    /// The requests that wait. Clients take turns, so that one with many requests does not delay
    /// all others.
    @exclusivity(unchecked) private var line = WaitingLine()
    /// Their streams, by their numbers in the line.
    @exclusivity(unchecked) private var waiting: [UInt64: HTTP2OriginStream] = [:]
    private var lastNumber: UInt64 = 0

    init(
        _ server: OriginServer,
        _ settings: OriginHTTP2,
        host: any OriginHost,
        on loop: EventLoop
    ) {
        self.server = server
        self.settings = settings
        self.host = host
        self.loop = loop
    }

    /// The memory in which responses' heads are read.
    var heads: HeadScratch { host.heads }

    /// Whether requests wait for a connect, and not for a stream.
    var isMaking: Bool { making != nil }

    /// Connections without a request.
    var idleCount: Int { open.count { $0.streamCount == 0 } }

    /// A free stream, unless requests wait for one.
    func freeStream() -> HTTP2OriginStream? {
        guard line.isEmpty, let connection = free else { return nil }
        return HTTP2OriginStream(server, of: connection, self, on: loop)
    }

    /// A stream for the request of a dial: a free one, or one that waits.
    ///
    /// - Throws: of the connect, where the request needs one; ``SocketError/noStream`` where too
    ///   many wait.
    func stream(for dial: any StreamSeeker) throws(SocketError) -> HTTP2OriginStream {
        if let stream = freeStream() {
            host.count(.originReuses)
            return stream
        }
        lastNumber += 1
        let waiter = WaitingLine.Waiter(id: lastNumber, loop: loop.number, flow: dial.flow)
        switch line.enter(waiter, max: waitersMax) {
        case .entered: break
        case .displaced(let other): displace(other)
        case .full: throw .noStream
        }
        if mayConnect {
            do throws(SocketError) {
                try connect()
            } catch {
                // A stream of another connection may become free.
                guard !open.isEmpty else {
                    line.remove(waiter.id, of: waiter.flow)
                    throw error
                }
            }
        }
        let stream = HTTP2OriginStream(at: server, for: dial, as: waiter, self, on: loop)
        waiting[waiter.id] = stream
        return stream
    }

    /// A request has left the line for another client's. It learns of it later: that other request
    /// is at work.
    private func displace(_ waiter: WaitingLine.Waiter) {
        guard let stream = waiting.removeValue(forKey: waiter.id) else { return }
        let displaced = LoopBound(stream, on: loop)
        loop.perform { displaced.value.failed(.noStream, nil) }
    }

    private var free: HTTP2OriginConnection? { open.first(where: \.hasRoom) }

    private var mayConnect: Bool { making == nil && open.count < settings.connectionsMax }

    /// How many may wait: those that connections which are still to be made will take, and
    /// ``lineMax`` more.
    private var waitersMax: Int {
        let missing = max(settings.connectionsMax - open.count, 0)
        return lineMax + missing * settings.limits.streamsMax
    }

    /// Connects, to see whether the server answers again. Where a connect runs, its end will tell.
    func connectAlone() throws(SocketError) {
        guard making == nil else { return }
        guard open.isEmpty else { return server.health.connected(now: loop.now) }
        try connect()
    }

    private func connect() throws(SocketError) {
        let socket = try OriginSocket(to: server)
        let session: HTTP2ClientSession
        do throws(HTTP2ClientSession.Fault) {
            session = try HTTP2ClientSession(settings.limits, isSecure: socket.tls != nil)
        } catch {
            Connection.discard(socket.descriptor)
            throw SocketError("http2", code: ENOMEM)
        }
        let connection = HTTP2OriginConnection(
            session,
            over: socket,
            for: self,
            host: host,
            on: loop
        )
        try connection.begin(connectTimeout, isConnecting: socket.isConnecting)
        making = connection
    }

    // MARK: Events of connections

    /// The server speaks HTTP/2.
    func made(_ connection: HTTP2OriginConnection) {
        making = nil
        open.append(connection)
        host.count(.originHTTP2Connections)
        server.health.connected(now: loop.now)
        serveLine()
    }

    /// The server takes no connection, or does not speak HTTP/2.
    ///
    /// - fault: of the handshake, where that has failed.
    func failed(_ error: SocketError, _ fault: TLSFailure?) {
        making = nil
        // Where other connections are, a stream of theirs may become free.
        guard open.isEmpty else { return watchLine() }
        failLine(error, fault)
    }

    private func failLine(_ error: SocketError, _ fault: TLSFailure? = nil) {
        let streams = line.removeAll().compactMap { waiting.removeValue(forKey: $0.id) }
        for stream in streams { stream.failed(error, fault) }
    }

    /// A connection takes no more requests.
    func ended(_ connection: HTTP2OriginConnection) {
        open.removeAll { $0 === connection }
        host.count(.originHTTP2Ended)
        serveLine()
    }

    /// Gives free streams to those that wait, and connects for the rest.
    func serveLine() {
        while !line.isEmpty, let connection = free, let stream = takeFirst() {
            stream.join(connection)
            stream.joined()
        }
        guard !line.isEmpty else { return }
        defer { watchLine() }
        guard mayConnect else { return }
        do throws(SocketError) {
            try connect()
        } catch {
            guard open.isEmpty else { return }
            failLine(error)
        }
    }

    private func takeFirst() -> HTTP2OriginStream? {
        guard let waiter = line.first(for: server.state.number) else { return nil }
        line.serve(waiter)
        return waiting.removeValue(forKey: waiter.id)
    }

    /// A request no longer waits.
    func left(_ waiter: WaitingLine.Waiter) {
        line.remove(waiter.id, of: waiter.flow)
        waiting[waiter.id] = nil
    }

    // MARK: Deadlines of those that wait

    /// A connection that lives watches the deadlines of requests that have none yet.
    func watchLine() {
        guard let next = waiting.values.compactMap(\.deadline).min() else { return }
        (making ?? open.first)?.arm(next)
    }

    func lineDeadlinesPassed(_ now: UInt64) {
        for stream in waiting.values {
            if let deadline = stream.deadline, deadline <= now { stream.deadlinePassed() }
        }
        watchLine()
    }

    // MARK: The end

    /// Ends connections as soon as they carry no request.
    func retire() {
        for connection in open { connection.retire() }
    }
}
