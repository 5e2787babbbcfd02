import EventLoops

/// One server of an origin on one event loop.
final class OriginServer: OriginPeer {
    let settings: OriginServerSettings
    /// Whether its connections carry many requests at once.
    let isShared: Bool
    /// Whether the number of its connections is limited.
    let isLimited: Bool
    @exclusivity(unchecked) private var idle = IdleConnections()
    /// Connections that are reserved for a request that waited, by its number.
    private var promised: [UInt64: HTTP1OriginStream] = [:]

    /// Its connections, where it speaks HTTP/2: of each group that has had a request.
    @exclusivity(unchecked) private var sharedConnections: [SharedConnections?]

    /// Whether the server no longer belongs to the origin.
    private var isGone = false
    private let ejection: Ejection
    private let firstByteTimeout: UInt64
    private let origin: OriginState

    init(_ settings: OriginServerSettings, of origin: OriginSettings) {
        self.settings = settings
        // Each request asks for both, and the settings are large to look into.
        isShared = settings.http2 != nil
        isLimited = settings.connectionsMax != nil
        ejection = origin.rules.ejection
        firstByteTimeout = origin.rules.firstByteTimeout
        self.origin = origin.state
        sharedConnections = Array(repeating: nil, count: isShared ? SharingGroup.allCases.count : 0)
    }

    var state: ServerState { settings.state }

    var health: ServerHealth { settings.state.health }

    /// A response began.
    func responded(status: Int, on loop: EventLoop) {
        state.health.responded(now: loop.now)
        if ejection.isFailure(status) {
            failed(.status(status), on: loop)
        } else {
            state.succeeded()
        }
    }

    /// A response did not begin in time.
    ///
    /// `total_timeout` includes the time that a client takes for its upload. So this is the
    /// server's failure only if it had the whole request for as long as that took, or for
    /// `first_byte_timeout`: no client makes a server look silent.
    ///
    /// - begunAt: when the request began; - givenAt: when all of it was given to the stream, or
    ///   `begunAt` where it was not.
    func wasSilent(begunAt: UInt64, givenAt: UInt64, on loop: EventLoop) {
        let now = loop.now
        guard now &- givenAt >= min(givenAt &- begunAt, firstByteTimeout) else { return }
        health.wasSilent(since: begunAt, now: now)
        failed(.timeout, on: loop)
    }

    func connectFailed(_ error: SocketError, begunAt: UInt64, on loop: EventLoop) {
        // That is not the server's fault.
        guard !error.isShortage else { return }
        let fault: ServerHealth.Fault = error.isTimeout ? .connectTimedOut : .refused
        health.failed(fault, begunAt: begunAt, now: loop.now)
        let failure: ServerFailure =
            if error == .handshakeFailed { .handshake } else if error == .noHTTP2 { .noHTTP2 } else
            {
                error.isTimeout ? .connectTimeout : .refused
            }
        state.note(failure, wall: loop.wallMilliseconds)
    }

    /// A request failed. A failed connect makes the server skipped anyway.
    func failed(_ failure: ServerFailure, on loop: EventLoop) {
        state.note(failure, wall: loop.wallMilliseconds)
        guard ejection.failures > 0, state.requestFailed() >= ejection.failures else { return }
        origin.eject(state, ejection, now: loop.now)
    }

    /// Takes a connection with this preface that has not shown an end.
    ///
    /// Bytes that the origin sent after its last response would be taken for the response to the
    /// next request (RFC 9112 §9.2). The event loop knows of such bytes if the connection became
    /// idle before its current iteration. If all became idle in this iteration, the event loop
    /// polls once for all of them. For a connection that it has no result for, the gateway asks the
    /// kernel.
    func takeIdle(_ preface: [UInt8], on loop: EventLoop) -> HTTP1OriginStream? {
        if isLimited, !origin.lendsIdle { return nil }
        idle.settle(loop.round)
        if idle.areAllFresh {
            loop.look()
            idle.settle(loop.round)
        }
        while let (stream, isFresh) = idle.take(preface) {
            countOut(stream)
            if isFresh ? stream.isFitNow() : stream.isFit { return stream }
            stream.close()
        }
        return nil
    }

    func keep(_ stream: HTTP1OriginStream, max: Int) {
        idle.settle(stream.loop.round)
        guard !isGone, max > 0 else { return stream.close() }
        if isLimited {
            let loop = stream.loop.number
            switch origin.rests(state, on: loop, isShareable: stream.preface.isEmpty) {
            case .kept: stream.place = .idle
            case .given(let waiter):
                promised[waiter] = stream
                return
            case .closes: return stream.closeInOrder()
            }
        }
        if idle.streams.count >= max {
            // A connection for one client makes room for another client's connection.
            guard !stream.preface.isEmpty, let oldest = idle.streams.first else {
                countOut(stream)
                return stream.close()
            }
            forget(oldest)
            oldest.close()
        }
        idle.add(stream)
    }

    var idleCount: Int {
        sharedConnections.reduce(idle.streams.count) { $0 + ($1?.idleCount ?? 0) }
    }

    func closeIdle() {
        for connections in sharedConnections { connections?.retire() }
        for stream in idle.takeAll() {
            countOut(stream)
            stream.closeInOrder()
        }
    }

    /// The server no longer belongs to the origin. Connections in use are closed when their request
    /// ends.
    func leave() {
        isGone = true
        closeIdle()
        // The next pool can't give them. Their waiters choose again.
        for stream in promised.values { stream.closeInOrder() }
        promised = [:]
    }

    func forget(_ stream: HTTP1OriginStream) {
        countOut(stream)
        if let given = promised.first(where: { $0.value === stream }) { promised[given.key] = nil }
        idle.remove(stream)
    }

    // MARK: HTTP/2

    /// Its connections of HTTP/2 for a group, with the current settings of its origin.
    func shared(
        by group: SharingGroup,
        connectTimeout: UInt64,
        queue: QueueRule,
        host: any OriginHost,
        on loop: EventLoop
    ) -> SharedConnections {
        guard let settings = settings.http2 else {
            preconditionFailure("OriginServer: it speaks HTTP/1.1")
        }
        let shared =
            sharedConnections[group.rawValue]
            ?? SharedConnections(self, settings, host: host, on: loop)
        sharedConnections[group.rawValue] = shared
        shared.connectTimeout = connectTimeout
        shared.lineMax = queue.max
        return shared
    }

    // MARK: Places

    /// Whether a request may have a connection now.
    ///
    /// - orIdle: whether an idle one is enough.
    func hasRoom(orIdle: Bool) -> Bool {
        guard isLimited else { return true }
        return origin.hasRoom(state) || orIdle && idleCount > 0 && origin.lendsIdle
    }

    /// Takes a place for a connection, where the server has a limit.
    func reserve() -> Bool { !isLimited || origin.reserve(state) }

    /// A connection with a place is closed, or was not made.
    func freed(on loop: EventLoop) {
        guard isLimited else { return }
        origin.freed(state, now: loop.now)
    }

    /// The connection that is reserved for this waiter.
    func takePromised(_ waiter: UInt64) -> HTTP1OriginStream? {
        promised.removeValue(forKey: waiter)
    }

    /// Closes the oldest idle connection: a request of another event loop waits for its place.
    func yield() {
        guard !origin.lendsIdle, let oldest = idle.streams.first else { return }
        forget(oldest)
        oldest.closeInOrder()
    }

    private func countOut(_ stream: HTTP1OriginStream) {
        guard case .idle = stream.place else { return }
        stream.place = .held
        origin.leftIdle(state, on: stream.loop.number)
    }
}

/// The idle connections to a server. The last used one is used next, so that the others can time
/// out.
private struct IdleConnections {
    /// In the order in which they became idle.
    private(set) var streams: [HTTP1OriginStream] = []
    /// The first of those that became idle since the event loop last polled for events.
    private var freshStart = 0
    /// The event loop's iteration in which those became idle.
    private var round: UInt64 = 0

    /// Whether there are connections, and the event loop has polled for none of them.
    var areAllFresh: Bool { freshStart == 0 && !streams.isEmpty }

    mutating func add(_ stream: HTTP1OriginStream) { streams.append(stream) }

    /// The event loop has polled for the connections that became idle before this iteration.
    mutating func settle(_ now: UInt64) {
        guard now != round else { return }
        round = now
        freshStart = streams.count
    }

    /// Takes a connection with this preface: the last of those that the event loop has polled for,
    /// or else the last of the fresh ones.
    mutating func take(_ preface: [UInt8]) -> (stream: HTTP1OriginStream, isFresh: Bool)? {
        if let place = last(in: 0..<freshStart, preface) { return (remove(at: place), false) }
        let fresh = freshStart..<streams.count
        return last(in: fresh, preface).map { (remove(at: $0), true) }
    }

    /// The last place of a connection with this preface. Usually there is no preface, and all
    /// connections are alike.
    private func last(in places: Range<Int>, _ preface: [UInt8]) -> Int? {
        preface.isEmpty ? places.last : places.last { streams[$0].preface == preface }
    }

    mutating func takeAll() -> [HTTP1OriginStream] {
        defer { self = IdleConnections() }
        return streams
    }

    mutating func remove(_ stream: HTTP1OriginStream) {
        if let place = streams.lastIndex(where: { $0 === stream }) { _ = remove(at: place) }
    }

    private mutating func remove(at place: Int) -> HTTP1OriginStream {
        if place < freshStart { freshStart -= 1 }
        return streams.remove(at: place)
    }
}
