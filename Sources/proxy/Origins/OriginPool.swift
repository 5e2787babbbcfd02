import Lanes

/// One origin on one lane: its servers, taken in turn, and their idle connections.
package final class OriginPool {
    /// A server that refused a connect is passed over for this long, unless all did.
    private static let pauseMilliseconds: UInt64 = 5_000

    package let settings: OriginSettings
    package let servers: [OriginServer]
    private var next = 0

    package init(_ settings: OriginSettings) {
        self.settings = settings
        servers = settings.servers.map(OriginServer.init)
    }

    /// The server whose turn it is among those that the request has not tried; one that failed
    /// lately only when no other is left.
    package func server(now: UInt64, after tried: [OriginServer]) -> OriginServer? {
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
    package func closeIdle() {
        for server in servers { server.closeIdle() }
    }

    /// Remembers that a connect to a server failed.
    package func connectFailed(_ server: OriginServer, now: UInt64) {
        server.pausedUntil = now &+ Self.pauseMilliseconds
    }
}

/// One server of an origin on one lane.
package final class OriginServer {
    package let settings: OriginServerSettings
    var pausedUntil: UInt64 = 0
    /// Idle connections; the one used last is used next, so that the others can grow old.
    private var idle: [OriginStream] = []
    /// Those that have become idle since the lane last asked for events.
    private var fresh: [OriginStream] = []
    /// The lane's round in which `fresh` became idle.
    private var freshRound: UInt64 = 0

    package init(_ settings: OriginServerSettings) { self.settings = settings }

    /// Takes a connection that has shown no sign of its end.
    ///
    /// What the origin has sent since its last response would be taken for the response to the next
    /// request (RFC 9112 §9.2). Of a connection that became idle before the lane's `round` that is
    /// known; of one that became idle in it, the kernel is asked.
    package func takeIdle(round: UInt64) -> OriginStream? {
        settle(round)
        while let connection = idle.popLast() {
            if connection.isFit { return connection }
            connection.close()
        }
        while let connection = fresh.popLast() {
            if connection.isFit, connection.isSilent() { return connection }
            connection.close()
        }
        return nil
    }

    func keep(_ connection: OriginStream, max: Int, round: UInt64) {
        settle(round)
        guard idleCount < max else { return connection.close() }
        fresh.append(connection)
    }

    /// Counts those among the idle that became so in an earlier round.
    private func settle(_ round: UInt64) {
        guard round != freshRound else { return }
        freshRound = round
        idle.append(contentsOf: fresh)
        fresh.removeAll(keepingCapacity: true)
    }

    package var idleCount: Int { idle.count + fresh.count }

    func closeIdle() {
        for connection in idle + fresh { connection.close() }
        idle = []
        fresh = []
    }

    func forget(_ connection: OriginStream) {
        if let index = idle.lastIndex(where: { $0 === connection }) { idle.remove(at: index) }
        if let index = fresh.lastIndex(where: { $0 === connection }) { fresh.remove(at: index) }
    }
}
