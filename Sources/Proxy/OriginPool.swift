import Transport

/// One origin on one lane: its servers, taken in turn, and their idle connections.
final class OriginPool {
    /// A server that refused a connect is passed over for this long, unless all did.
    private static let pauseMilliseconds: UInt64 = 5_000

    let settings: OriginSettings
    let servers: [OriginServer]
    private var next = 0

    init(_ settings: OriginSettings) {
        self.settings = settings
        servers = settings.servers.map(OriginServer.init)
    }

    /// The server whose turn it is among those that the request has not tried; one that failed
    /// lately only when no other is left.
    func server(now: UInt64, after tried: [OriginServer]) -> OriginServer? {
        var fallback: OriginServer?
        for step in 0..<servers.count {
            let index = (next + step) % servers.count
            let server = servers[index]
            if tried.contains(where: { $0 === server }) { continue }
            if server.pausedUntil > now {
                fallback = fallback ?? server
                continue
            }
            next = (index + 1) % servers.count
            return server
        }
        return fallback
    }

    /// Closes what waits; connections in use are closed when their exchange ends.
    func closeIdle() {
        for server in servers { server.closeIdle() }
    }

    /// Remembers that a connect to a server failed.
    func connectFailed(_ server: OriginServer, now: UInt64) {
        server.pausedUntil = now &+ Self.pauseMilliseconds
    }
}

/// One server of an origin on one lane.
final class OriginServer {
    let settings: OriginServerSettings
    var pausedUntil: UInt64 = 0
    /// Idle connections; the one used last is used next, so that the others can grow old.
    private(set) var idle: [OriginConnection] = []

    init(_ settings: OriginServerSettings) { self.settings = settings }

    /// Takes a connection that has shown no sign of its end.
    func takeIdle() -> OriginConnection? {
        while let connection = idle.popLast() {
            if connection.isFit { return connection }
            connection.close()
        }
        return nil
    }

    func keep(_ connection: OriginConnection, max: Int) {
        guard idle.count < max else { return connection.close() }
        idle.append(connection)
    }

    func closeIdle() {
        for connection in idle { connection.close() }
        idle = []
    }

    func forget(_ connection: OriginConnection) {
        if let index = idle.lastIndex(where: { $0 === connection }) { idle.remove(at: index) }
    }
}
