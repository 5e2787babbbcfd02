package import EventLoops

/// Watches the servers of all origins on one event loop, for all event loops. It makes the checks
/// that are due, tries servers that took no connection, and reports when an origin has no server
/// left.
package final class OriginWatch {
    /// An event for the log.
    package enum Notice: Sendable, Equatable {
        /// No server of the origin can serve; with the state of each server.
        case allOut(origin: String, servers: [String])
        /// A server can serve again.
        case back(origin: String)
    }

    /// The checks of one server.
    private struct Row {
        let server: OriginServerSettings
        let check: ServerCheck
        let client: HTTPClient
        var dueAt: UInt64
        var call: HTTPCall?
    }

    /// The longest pause between two checks for due work.
    private static let pauseMilliseconds: UInt64 = 1_000
    /// The shortest time between two notices about one origin.
    private static let noticeMilliseconds: UInt64 = 10_000

    private let loop: EventLoop
    private let tell: @Sendable (Notice) -> Void
    private let tryServers: () -> Void
    private var alarm: Alarm?
    private var origins: [OriginSettings] = []
    /// By the identity of a server's state.
    private var rows: [ObjectIdentifier: Row] = [:]
    /// The last notice about each origin, and its time.
    private var told: [String: (isOut: Bool, at: UInt64)] = [:]

    /// - tryServers: tries the servers for which a trial connect is due.
    package init(
        on loop: EventLoop,
        tryServers: @escaping () -> Void,
        tell: @escaping @Sendable (Notice) -> Void
    ) {
        self.loop = loop
        self.tryServers = tryServers
        self.tell = tell
    }

    /// Takes the origins that are served from now on. The checks of a server that stays continue.
    package func take(_ origins: [OriginSettings]) {
        self.origins = origins
        var next: [ObjectIdentifier: Row] = [:]
        for origin in origins {
            for server in origin.servers {
                let id = ObjectIdentifier(server.state)
                if let check = origin.rules.check {
                    next[id] = row(
                        of: server,
                        check,
                        in: origin,
                        before: rows.removeValue(forKey: id)
                    )
                } else {
                    server.state.forgetChecks(now: loop.now)
                }
            }
        }
        for row in rows.values { row.call?.cancel() }
        rows = next
        look()
    }

    private func row(
        of server: OriginServerSettings,
        _ check: ServerCheck,
        in origin: OriginSettings,
        before: Row?
    ) -> Row {
        before?.call?.cancel()
        var alone = origin
        // A check says nothing about the connects of requests, so it has a state of its own.
        alone.servers = [server.alone]
        alone.rules.ejection.failures = 0
        alone.rules.connectTimeout = check.timeout
        alone.rules.firstByteTimeout = check.timeout
        var settings = HTTPClient.Settings()
        settings.totalTimeout = check.timeout
        // The first check comes soon, and not from all gateways at once.
        let soon = loop.now &+ .random(in: 0...min(check.interval, 1_000) / 4)
        return Row(
            server: server,
            check: check,
            client: HTTPClient(alone, settings, on: loop),
            dueAt: before.map { min($0.dueAt, loop.now &+ check.interval) } ?? soon,
            call: nil
        )
    }

    /// Ends the watch, with the checks under way.
    package func end() {
        for row in rows.values { row.call?.cancel() }
        rows = [:]
        origins = []
        alarm?.rang = nil
        alarm?.close()
        alarm = nil
    }

    // MARK: Looks

    private func look() {
        let now = loop.now
        for (id, row) in rows where row.call == nil && row.dueAt <= now {
            begin(row, of: id, now: now)
        }
        tryServers()
        for origin in origins {
            origin.state.look(now: now)
            tell(origin, now)
        }
        schedule(now)
    }

    private func schedule(_ now: UInt64) {
        let due = rows.values.lazy.filter { $0.call == nil }.map(\.dueAt).min() ?? .max
        let pause = due > now ? min(due - now, Self.pauseMilliseconds) : 1
        wake(after: pause)
    }

    private func wake(after milliseconds: UInt64) {
        // If there is no descriptor for it, the next reload tries again.
        if alarm == nil {
            alarm = try? Alarm(on: loop)
            alarm?.rang = { [unowned self] in look() }
        }
        alarm?.set(nanoseconds: MonotonicClock.nanoseconds &+ milliseconds &* 1_000_000)
    }

    private func begin(_ row: Row, of id: ObjectIdentifier, now: UInt64) {
        // A tenth more or less, so that the checks of many gateways don't stay synchronous.
        let tenth = row.check.interval / 10
        rows[id]?.dueAt = now &+ row.check.interval &- tenth &+ .random(in: 0...2 * tenth)
        let request = row.check.request(to: row.server.name)
        var isOver = false
        let call = row.client.send(request) { [unowned self] result in
            isOver = true
            rows[id]?.call = nil
            let result = CheckResult(result, row.check)
            let (now, wall) = (loop.now, loop.wallMilliseconds)
            _ = row.server.state.checked(result, row.check, now: now, wall: wall)
            for origin in origins { tell(origin, now) }
            schedule(now)
        }
        if !isOver { rows[id]?.call = call }
    }

    /// Reports that the origin's servers are out, or back. A server that changes back and forth is
    /// reported at most every ten seconds.
    private func tell(_ origin: OriginSettings, _ now: UInt64) {
        let conditions = origin.servers.map { $0.state.condition(now: now) }
        let isOut = !conditions.isEmpty && conditions.allSatisfy(\.isOut)
        let before = told[origin.name]
        guard isOut != (before?.isOut ?? false) else { return }
        if let before, now < before.at &+ Self.noticeMilliseconds { return }
        told[origin.name] = (isOut, now)
        guard isOut else { return tell(.back(origin: origin.name)) }
        let servers = zip(origin.servers, conditions).map { "\($0.name) is \($1.rawValue)" }
        tell(.allOut(origin: origin.name, servers: servers))
    }
}

extension CheckResult {
    fileprivate init(_ result: Result<HTTPResponse, CallFault>, _ check: ServerCheck) {
        switch result {
        case .success(let response): self = check.result(of: response)
        case .failure(.timedOut), .failure(.firstByteTimedOut), .failure(.stalled):
            self = .timeout
        // A health page may be too long to read. Only its status counts, and that was not judged.
        case .failure: self = .failed
        }
    }
}
