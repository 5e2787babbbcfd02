import EventLoops
import Services
import Telemetry

/// One origin on one event loop: its servers, the choice among them, and connections to them.
final class OriginPool {
    let settings: OriginSettings
    let servers: [OriginServer]
    let loop: EventLoop
    /// The host lives longer than the pool, since it owns it.
    unowned let host: any OriginHost
    private var balancer: Balancer
    /// The roles in the order in which servers are chosen.
    private let roles: [OriginServerSettings.Role]
    /// Requests that wait for a place.
    var waits = Waits()

    /// - before: the old pool of the same origin. The idle connections of servers that stay are
    ///   kept, the others are closed.
    init(
        _ settings: OriginSettings,
        on loop: EventLoop,
        host: any OriginHost,
        replacing before: OriginPool? = nil
    ) {
        self.settings = settings
        self.loop = loop
        self.host = host
        let known = before?.servers ?? []
        servers = settings.servers.map { server in
            known.first { $0.settings.suits(server) } ?? OriginServer(server, of: settings)
        }
        for server in known where !servers.contains(where: { $0 === server }) { server.leave() }
        balancer = Balancer(settings.rules.balance, count: servers.count)
        roles = servers.contains { $0.settings.role == .backup } ? [.primary, .backup] : [.primary]
        listen()
    }

    /// The result of asking for a connection.
    enum Connecting {
        /// The connection takes a request at once.
        case connected(any OriginStream)
        /// Connects run; the owner learns the result.
        case dialing(OriginDial)
        case failed(Unreached)
    }

    /// How a request wants its connection.
    struct Demand {
        /// The flow in which the event loop schedules the connection.
        var flow = 0
        /// The value that requests for the same server have in common, where the origin's balance
        /// uses a hash.
        var affinity: UInt64 = 0
        /// Whether an idle connection may be used.
        var reusesIdle: Bool
        /// The ends of the client's connection, where the origin gets them
        /// (``OriginSettings/preface``).
        var ends: OriginPreface.Ends?
        /// With whom it may share a connection.
        var group = SharingGroup.usual
        /// A server that is chosen only when no other is left.
        var avoided: (any OriginPeer)?
        /// When connects end at the latest, milliseconds of ``EventLoop/now``.
        var end = UInt64.max
    }

    /// Gets a connection for a request.
    func connect(for owner: any OriginStreamOwner, _ demand: Demand) -> Connecting {
        let preface = settings.preface.bytes(demand.ends)
        let (affinity, reusesIdle) = (demand.affinity, demand.reusesIdle)
        let avoided = demand.avoided.flatMap { avoided in servers.first { $0 === avoided } }
        let other = avoided.map {
            choose(after: [$0], affinity: affinity, reusesIdle: reusesIdle, onlyFit: true)
        }
        let choice: Choice
        if case .server = other, let other {
            choice = other
        } else {
            choice = choose(after: [], affinity: affinity, reusesIdle: reusesIdle, onlyFit: false)
        }
        switch choice {
        case .nobody:
            guard !servers.isEmpty else { return .failed(Unreached(failure: .originUnreachable)) }
            tryServers()
            return .failed(Unreached(failure: .originDown, server: servers.last))
        case .server(let server):
            guard reusesIdle, let ready = ready(server, preface, by: demand.group) else { break }
            host.count(.originReuses)
            ready.take(for: owner, flow: demand.flow)
            return .connected(ready)
        case .full: break
        }
        let dial = OriginDial(self, for: owner, demand, preface: preface)
        return dial.begin(choice)
    }

    /// A stream of a connection that is already there. Where a server's requests are limited, those
    /// over HTTP/2 need a place first, which a dial looks for.
    private func ready(
        _ server: OriginServer,
        _ preface: [UInt8],
        by group: SharingGroup
    ) -> (any DialedStream)? {
        guard server.isShared else { return server.takeIdle(preface, on: loop) }
        return server.isLimited ? nil : shared(server, by: group).freeStream()
    }

    /// Where a request may go.
    enum Choice {
        case server(OriginServer)
        /// These servers are suitable, and each has the most connections allowed.
        case full([OriginServer])
        case nobody
    }

    /// The server for a request, of those that were not tried: a primary server that is up, or else
    /// a backup that is up. A skipped server is chosen only when no other is left. A request waits
    /// for a full server rather than go to a skipped one or to a backup.
    ///
    /// - reusesIdle: whether an idle connection may be used.
    /// - onlyFit: whether skipped servers are excluded.
    func choose(
        after tried: [OriginServer],
        affinity: UInt64,
        reusesIdle: Bool,
        onlyFit: Bool
    ) -> Choice {
        // Most origins have one server, so there is nothing to choose.
        if servers.count == 1, !onlyFit {
            guard tried.isEmpty, !servers[0].state.isClosed else { return .nobody }
            return servers[0].hasRoom(orIdle: reusesIdle) ? .server(servers[0]) : .full(servers)
        }
        let now = loop.now
        var full: [OriginServer] = []
        for role in roles {
            if !onlyFit, let due = serverOnTrial(role, after: tried, now: now) {
                return .server(due)
            }
            let place = balancer.choose(affinity: affinity) { place in
                let server = servers[place]
                guard server.settings.role == role, !server.state.isClosed,
                    !tried.contains(where: { $0 === server })
                else { return nil }
                guard case .fit = server.state.standing(now: now) else { return nil }
                guard server.hasRoom(orIdle: reusesIdle) else {
                    full.append(server)
                    return nil
                }
                let share = server.state.share(slowStart: settings.rules.slowStart, now: now)
                return Balancer.Candidate(
                    weight: server.settings.weight &* share,
                    load: server.state.active,
                    seed: server.settings.seed
                )
            }
            if let place { return .server(servers[place]) }
            if !full.isEmpty { return .full(full) }
        }
        return onlyFit ? .nobody : lastResort(tried, reusesIdle: reusesIdle)
    }

    /// A skipped server, where no other is left. A server whose connects time out is excluded: the
    /// request would wait in vain.
    private func lastResort(_ tried: [OriginServer], reusesIdle: Bool) -> Choice {
        var full: [OriginServer] = []
        for role in roles {
            for server in servers where server.settings.role == role {
                guard !server.state.isClosed, !server.health.answersNoConnect,
                    !tried.contains(where: { $0 === server })
                else { continue }
                guard !server.hasRoom(orIdle: reusesIdle) else { return .server(server) }
                full.append(server)
            }
        }
        return full.isEmpty ? .nobody : .full(full)
    }

    /// Begins the trials that are due. A trial of connects needs no request, and no request waits
    /// for it. A trial of responses needs a request.
    ///
    /// - Returns: the server that gets this request.
    private func serverOnTrial(
        _ role: OriginServerSettings.Role,
        after tried: [OriginServer],
        now: UInt64
    ) -> OriginServer? {
        for server in servers where server.settings.role == role {
            guard case .trialDue = server.state.standing(now: now), !server.state.isClosed,
                !tried.contains(where: { $0 === server }), server.hasRoom(orIdle: false)
            else { continue }
            switch server.health.beginTrial(now: now) {
            case .silent: return server
            case .refused, .connectTimedOut: probe(server)
            case nil: break
            }
        }
        return nil
    }

    /// Tries the servers that don't answer connects, without a request, at most once per second
    /// each.
    func tryServers() {
        for server in servers where !server.state.isClosed {
            if server.health.beginEarlyTrial(now: loop.now) { probe(server) }
        }
    }

    /// Connects to a server without a request, to see whether it answers again.
    private func probe(_ server: OriginServer) {
        do throws(SocketError) {
            guard !server.isShared else {
                return try shared(server, by: .usual).connectAlone()
            }
            let stream = try make(server, for: .trial, settings.preface.bytes(nil))
            if stream.isConnected {
                stream.trialEnded(nil)
            } else {
                stream.setDeadline(milliseconds: settings.rules.connectTimeout)
            }
        } catch {
            host.count(.originConnectFailures)
            server.connectFailed(error, begunAt: loop.now, on: loop)
        }
    }

    /// Gets a stream to a server for a dial: one that waits for its connection, or, over HTTP/2,
    /// one that is free now. The dial has reserved a place, which becomes free again if this fails.
    ///
    /// - preface: what the server gets before TLS begins.
    func open(
        _ server: OriginServer,
        for dial: OriginDial,
        _ preface: [UInt8]
    ) throws(SocketError) -> any DialedStream {
        guard server.isShared else { return try make(server, for: .dial(dial), preface) }
        do throws(SocketError) {
            return try shared(server, by: dial.group).stream(for: dial)
        } catch {
            server.freed(on: loop)
            throw error
        }
    }

    private func make(
        _ server: OriginServer,
        for use: HTTP1OriginStream.Use,
        _ preface: [UInt8]
    ) throws(SocketError) -> HTTP1OriginStream {
        let socket: OriginSocket
        do throws(SocketError) {
            socket = try OriginSocket(to: server)
        } catch {
            if case .dial = use { server.freed(on: loop) }
            throw error
        }
        let stream = HTTP1OriginStream(use, over: socket, preface, host: host, on: loop)
        try stream.start(isConnecting: socket.isConnecting)
        return stream
    }

    private func shared(
        _ server: OriginServer,
        by group: SharingGroup
    ) -> SharedConnections {
        server.shared(
            by: group,
            connectTimeout: settings.rules.connectTimeout,
            queue: settings.rules.queue,
            host: host,
            on: loop
        )
    }

    /// Closes idle connections; connections in use are closed when their request ends.
    func closeIdle() {
        for server in servers { server.closeIdle() }
    }
}
