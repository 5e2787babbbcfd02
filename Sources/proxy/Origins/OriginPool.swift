package import Lanes

/// One origin on one lane: its servers, taken in turn, and connections to them.
package final class OriginPool {
    package let settings: OriginSettings
    package let servers: [OriginServer]
    let lane: Lane
    /// The host has the pool for as long as it lives.
    unowned let host: any OriginHost
    private var next = 0

    package init(_ settings: OriginSettings, on lane: Lane, host: any OriginHost) {
        self.settings = settings
        self.lane = lane
        self.host = host
        servers = settings.servers.map(OriginServer.init)
    }

    /// What became of the wish for a connection.
    package enum Connecting {
        /// The connection takes a request at once.
        case connected(OriginStream)
        /// Connects run; the owner is told how they ended.
        case dialing(OriginDial)
        /// No server takes a connection; which one was tried last.
        case failed(DialFault, OriginServer?)
    }

    /// Gets a connection for a request.
    ///
    /// - flow: whose turns of the lane the connection uses.
    /// - reusesIdle: an idle connection will do.
    /// - end: when connects are given up in any case, milliseconds of ``Lane/now``.
    package func connect(
        for owner: any OriginStreamOwner,
        flow: Int,
        reusesIdle: Bool,
        by end: UInt64 = .max
    ) -> Connecting {
        guard let server = server(after: [], onlyFit: false) else {
            return .failed(.refused, nil)
        }
        if reusesIdle, let idle = server.takeIdle(round: lane.round) {
            host.note(.connectionReused)
            idle.take(for: owner, flow: flow)
            return .connected(idle)
        }
        return OriginDial(self, for: owner, flow: flow, by: end).begin(server)
    }

    /// The server whose turn it is among those that were not tried; one that is passed over only
    /// when no other is left.
    ///
    /// - onlyFit: none that is passed over.
    func server(after tried: [OriginServer], onlyFit: Bool) -> OriginServer? {
        var fallback: OriginServer?
        for step in 0..<servers.count {
            let index = (next + step) % servers.count
            let server = servers[index]
            if tried.contains(where: { $0 === server }) { continue }
            guard isFit(server, onlyFit: onlyFit) else {
                fallback = fallback ?? server
                continue
            }
            next = (index + 1) % servers.count
            return server
        }
        return onlyFit ? nil : fallback
    }

    /// Whether a request may go to the server. Where a connect is due as a trial, it is begun, and
    /// the request does not wait for it.
    private func isFit(_ server: OriginServer, onlyFit: Bool) -> Bool {
        switch server.health.standing(now: lane.now) {
        case .fit: return true
        case .paused: return false
        case .trialDue:
            guard !onlyFit, servers.count > 1 else { return false }
            switch server.health.beginTrial(now: lane.now) {
            case .silent: return true
            case .refused, .connectTimedOut:
                probe(server)
                return false
            case nil: return false
            }
        }
    }

    /// Connects to a server without a request: whether it answers again.
    private func probe(_ server: OriginServer) {
        do throws(SocketError) {
            let stream = try open(server, for: .trial)
            if stream.isConnected {
                stream.trialEnded(nil)
            } else {
                stream.setDeadline(milliseconds: settings.connectTimeout)
            }
        } catch {
            host.note(.connectFailed)
            server.health.failed(.refused, begunAt: lane.now, now: lane.now)
        }
    }

    /// Begins to connect to a server.
    func open(_ server: OriginServer, for use: OriginStream.Use) throws(SocketError) -> OriginStream
    {
        let opened = try Connection.open(to: server.settings.address)
        let stream = OriginStream(
            server,
            use,
            descriptor: opened.descriptor,
            isConnecting: opened.isConnecting,
            host: host,
            on: lane
        )
        do throws(SocketError) {
            try lane.register(stream)
        } catch {
            stream.close()
            throw error
        }
        host.note(.connectBegan)
        return stream
    }

    /// Closes what waits; connections in use are closed when their request ends.
    package func closeIdle() {
        for server in servers { server.closeIdle() }
    }
}
