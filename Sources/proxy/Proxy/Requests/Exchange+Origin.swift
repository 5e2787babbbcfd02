import Dispatch
import EventLoops
import HTTPWire
import Rules
import Telemetry
import Verification

// The request on its way to a server.
extension Exchange {
    /// The place of the rule's origin among the settings and the pools.
    var originPlace: Int {
        guard let origin = flow.origin else {
            preconditionFailure("Exchange: a denied request is not forwarded")
        }
        return origin.rawValue
    }

    func connect(_ attempt: Attempt) -> Flow.Action {
        let place = originPlace
        let isFirst = attempt == .first
        if isFirst {
            let time = settings.origins[place].rules.totalTimeout
            side.begin(now: loop.now, milliseconds: time == 0 ? .max : time)
        }
        let demand = OriginPool.Demand(
            flow: client?.flow ?? 0,
            affinity: settings.origins[place].rules.balance.affinity(
                of: account.address,
                passed: flow.verdictState.passedKey
            ),
            reusesIdle: isFirst,
            ends: endsForOrigin,
            avoided: isFirst ? nil : side.servedBy?.server,
            end: side.respondBy
        )
        switch pools[place].connect(for: self, demand) {
        case .connected(let stream): return connected(stream)
        case .dialing(let dial):
            side.dials(dial)
            return .none
        case .failed(let why): return unreached(why)
        }
    }

    private func unreached(_ why: Unreached) -> Flow.Action {
        side.failed(why)
        return flow.connectFailed(why.failure)
    }

    /// Both ends of the client's connection, where the origin wants to know them before the
    /// request. The port is known when the client itself is connected, and not when a proxy names
    /// it.
    private var endsForOrigin: OriginPreface.Ends? {
        guard case .proxyHeader = settings.origins[originPlace].preface, let client else {
            return nil
        }
        let (port, own) = client.socketEnds
        let isPeer = account.address == peer.address && !peer.isUnix
        return (
            ProxyHeader.End(account.address, port: isPeer ? port : 0),
            ProxyHeader.End(own.ipAddress, port: own.port ?? 0)
        )
    }

    /// The connection accepts bytes.
    private func connected(_ connection: any OriginStream) -> Flow.Action {
        side.connected(connection, at: MonotonicClock.nanoseconds)
        // Held content has a known length, unless it was released before all of it had come.
        let whole = flow.isReleased ? nil : content.heldBody
        connection.begin(
            flow.facts,
            framing: whole.map { .length(UInt64($0.count)) } ?? flow.facts.framing,
            limits: settings.responseLimits
        )
        let inMemory = min(content.heldBody?.memory.count ?? 0, EventLoop.inputBytes)
        return flow.connected(
            connection.isReused ? .reused : .fresh,
            inMemory: UInt64(inMemory),
            clientSent: client?.hasWholeContent == true ? .whole : .partial,
            retriesMax: settings.origins[originPlace].rules.retries.max,
            mayRefuse: connection.mayRefuse
        )
    }

    /// Sends the head, together with the held content that is in memory.
    ///
    /// If content follows, the server can't take the request for whole from here until all content
    /// is sent, even if the process dies.
    func sendHead(with count: UInt64, _ ending: Leg.ConnectionEnd) -> Flow.Action {
        guard let origin else { return .none }
        do throws(SocketError) {
            // While nothing is sent, the request can be refused as a whole.
            try content.heldBody?.checkFile()
        } catch {
            record.note(problem: "spill: \(error)")
            return flow.heldUnreadable()
        }
        let memory = count > 0 ? content.heldBody?.memory ?? [] : []
        let outcome = origin.sendHead(
            originHead.bytes.span,
            // At most the bytes in memory, which an index can count.
            memory.span.extracting(first: Int(count)),
            isWhole: ending == .inOrder
        )
        guard note(outcome) else { return writeFailed(origin) }
        return flow.headSent()
    }

    /// Sends the next bytes of held content.
    func sendHeld(from offset: UInt64) -> Flow.Action {
        guard let origin, let held = content.heldBody else { return .none }
        var out = loop.takeOutput()
        defer { loop.giveBack(&out) }
        do throws(SocketError) {
            // An index can count held bytes.
            try held.read(from: Int(offset), into: &out, max: EventLoop.inputBytes)
            side.diskHasRead()
        } catch {
            return heldUnread(origin, error)
        }
        origin.append(out.span)
        guard note(origin.flush()) else { return writeFailed(origin) }
        return flow.heldSent(out.count)
    }

    /// Nanoseconds for which the rest of held content may wait for the disk: 30 s.
    private static let diskPatience: UInt64 = 30_000_000_000
    /// How long until the disk is asked again.
    private static let diskPause = DispatchTimeInterval.milliseconds(100)

    /// The disk does not give the next bytes. Where it is late, the server waits for them: some
    /// applications take a reset for the end of the content, and run with what they have (mod_php).
    private func heldUnread(_ connection: any OriginStream, _ fault: SocketError) -> Flow.Action {
        guard fault.isLate,
            side.diskIsLate(at: MonotonicClock.nanoseconds) < Self.diskPatience
        else {
            record.note(problem: "spill: \(fault)")
            return flow.heldUnreadable()
        }
        flow.originQueued()
        let waiting = LoopBound((self, connection), on: loop)
        loop.queue.asyncAfter(deadline: .now() + Self.diskPause) {
            let (exchange, connection) = waiting.value
            exchange.originDrained(connection)
        }
        return .none
    }

    /// Ends content that was released.
    func endHeld() -> Flow.Action {
        guard let origin else { return .none }
        origin.endContent()
        guard note(origin.flush()) else { return writeFailed(origin) }
        // Until now the request could be repeated, with this content.
        dropContent()
        return flow.contentSent()
    }

    func sendContent(_ piece: Flow.Piece) -> Flow.Action {
        guard let origin else { return .none }
        if case .last = piece {
            Audit(self).verdictIsFinal()
            origin.endContent()
        }
        guard note(origin.flush()) else { return writeFailed(origin) }
        switch piece {
        case .more: return .none
        case .last: return flow.contentSent()
        }
    }

    /// Tells the machine where bytes wait, and starts the server's time for them; `false` when the
    /// bytes could not be sent.
    private func note(_ outcome: Connection.WriteOutcome) -> Bool {
        switch outcome {
        case .sent: return true
        case .queued:
            flow.originQueued()
            watchOrigin()
            return true
        case .failed: return false
        }
    }

    /// Starts the server's time to take the bytes that wait for it.
    func watchOrigin() { origin?.setDeadline(milliseconds: settings.timeouts.responseIdle) }

    /// Bytes could not be sent. The origin may have answered and closed before it read them.
    private func writeFailed(_ connection: any OriginStream) -> Flow.Action {
        flow.writeFailed(isUntouched: connection.sentNothing)
    }

    /// Reads the bytes that the server sent before its connection broke, up to the head of its
    /// response: that may be longer than one read, and no event follows that brings the rest.
    func readLastWords() -> Flow.Action {
        guard let connection = origin else { return .none }
        connection.expectInput()
        while readOrigin(connection) {
            guard flow.hasResponse else { continue }
            connection.resumeReading()
            break
        }
        guard origin === connection else { return .none }
        return flow.lastWordsRead(heard(on: connection), retryBudget)
    }

    func heard(on connection: any OriginStream) -> Leg.Heard {
        connection.hasReceivedNothing ? .nothing : .something
    }

    /// Releases the connection and connects once more.
    func retry(_ why: Leg.Retry, _ release: Release, as attempt: Attempt) -> Flow.Action {
        switch why {
        case .unsent: break
        case .broken: proxy.tally.add(.originFailures)
        case .timedOut: proxy.tally.add(.originTimeouts)
        }
        proxy.tally.add(.retries)
        self.release(release)
        side.countRetry(of: settings.origins[originPlace].state)
        return .connect(attempt)
    }

    /// Whether the origin has retries left, and the request has time for one.
    var retryBudget: Leg.RetryBudget {
        let place = originPlace
        guard side.left(now: loop.now) > 0 else { return .spent }
        return settings.origins[place].state.mayRetry(settings.origins[place].rules.retries)
            ? .left : .spent
    }

    /// The request is sent; the response must begin in time.
    func awaitResponse(_ output: Output, _ held: Leg.HeldContent) {
        endRequest(output, held)
        let time = settings.origins[originPlace].rules.firstByteTimeout
        if let origin {
            let now = loop.now
            origin.givenAt = now
            origin.setDeadline(milliseconds: min(time, side.left(now: now)))
        }
        client?.expectNothing()
    }

    /// The request is sent. If no byte of it waits, the connection may end in order.
    func endRequest(_ output: Output, _ held: Leg.HeldContent) {
        if case .drop = held { dropContent() }
        if case .clear = output { origin?.requestTaken() }
    }

    /// Releases the origin's side.
    func release(_ release: Release) {
        switch side.leave() {
        case .none: break
        case .dialing(let dial):
            dial.cancel()
            side.note(dial)
        case .connected(let stream):
            if case .reset = release { return stream.reset() }
            let isReusable = release == .pool && !proxy.isDraining
            stream.release(
                isReusable: isReusable,
                idleTime: settings.timeouts.poolIdle,
                idleMax: settings.limits.pooledMax
            )
        }
    }
}

// Events of the connection. Those of a connection that the request has left come late.
extension Exchange: OriginStreamOwner {
    func originConnected(_ connection: any OriginStream) {
        side.dialEnded()
        perform(connected(connection))
    }

    func originUnreachable(_ why: Unreached) {
        side.dialEnded()
        perform(unreached(why))
    }

    func originDrained(_ connection: any OriginStream) {
        guard origin === connection else { return }
        // Bytes that the server takes now say nothing about its response.
        if !flow.hasResponse { connection.setDeadline(milliseconds: nil) }
        perform(flow.originDrained())
        if flow.hasResponse { origin?.resumeReading() }
    }

    func originWriteFailed(_ connection: any OriginStream) {
        guard origin === connection else { return }
        perform(writeFailed(connection))
    }

    func originTimedOut(_ connection: any OriginStream) {
        guard origin === connection, let client else { return }
        perform(
            flow.originTimedOut(
                client: client.unsentBytes > 0 ? .queued : .clear,
                heard(on: connection),
                retryBudget
            )
        )
    }
}
