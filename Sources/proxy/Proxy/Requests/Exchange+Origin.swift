import AppAttest
import ClientStreams
import Cryptography
import HTTPWire
import Lanes
import Origins
import TLSSession
import Telemetry
import Verification

// The request on its way to a server.
extension Exchange {
    /// Connects to a server.
    func connect(_ attempt: Attempt) -> Flow.Action {
        let reusesIdle = if case .first = attempt { true } else { false }
        if reusesIdle {
            let (end, overflows) = lane.now.addingReportingOverflow(
                settings.origins[originPlace].totalTimeout
            )
            record.respondBy = overflows ? .max : end
        }
        let connecting = pools[originPlace].connect(
            for: self,
            flow: client?.flow ?? 0,
            affinity: affinity,
            reusesIdle: reusesIdle,
            naming: endsForOrigin,
            avoiding: reusesIdle ? nil : record.servedBy?.server,
            by: record.respondBy
        )
        switch connecting {
        case .connected(let stream): return connected(stream)
        case .dialing(let dial):
            side = .dialing(dial)
            return .none
        case .failed(let fault, let server): return unreachable(fault, server)
        }
    }

    /// Who the origin is told that the client is, where it wants to know before the request. The
    /// port is known when the client itself is connected, and not when a proxy names it.
    private var endsForOrigin: OriginPreface.Ends? {
        guard case .proxyHeader = settings.origins[originPlace].preface, let client else {
            return nil
        }
        let (port, own) = client.socketEnds
        let isPeer = account.address == client.peerAddress && !client.peerIsUnix
        return (
            ProxyHeader.End(account.address, port: isPeer ? port : 0),
            ProxyHeader.End(own.ipAddress, port: own.port ?? 0)
        )
    }

    private func unreachable(_ fault: DialFault, _ server: OriginServer?) -> Flow.Action {
        side = .none
        record.lastTried = server
        switch fault {
        case .refused: return flow.connectFailed(.refused)
        case .timedOut: return flow.connectFailed(.timedOut)
        case .noneUp: return flow.connectFailed(.noneUp)
        case .queueFull: return flow.connectFailed(.queueFull)
        case .queueTimeout: return flow.connectFailed(.queueTimeout)
        case .handshakeFailed(let failure):
            record.originTLS = failure.reason
            return flow.connectFailed(.handshake)
        case .outOfDescriptors: return flow.connectFailed(.shortage)
        }
    }

    /// The connection takes bytes.
    private func connected(_ connection: OriginStream) -> Flow.Action {
        side = .connected(connection)
        record.sentAt = MonotonicClock.nanoseconds
        record.servedBy = (connection.server, connection.isReused)
        connection.begin(
            flow.facts.method,
            asksUpgrade: flow.facts.asks(.upgrade),
            framing: originFraming,
            limits: settings.responseLimits
        )
        let inMemory = min(content.heldBody?.memory.count ?? 0, Lane.inputBytes)
        return flow.connected(
            connection.isReused ? .reused : .fresh,
            inMemory: UInt64(inMemory),
            clientSent: client?.hasWholeContent == true ? .whole : .partial,
            retriesMax: settings.origins[originPlace].retries.max
        )
    }

    /// Sends the head, and with it what is in memory of content that is held.
    ///
    /// Where content is to follow, the connection ends with a reset from here until all of it is
    /// out, even if the process dies.
    func sendHead(
        with count: UInt64,
        _ ending: Flow.ConnectionEnd
    ) -> Flow.Action {
        guard let origin else { return .none }
        origin.resetsOnClose = if case .byReset = ending { true } else { false }
        let outcome: Connection.WriteOutcome
        if count > 0, let held = content.heldBody {
            let memory = held.memory
            // No more than is in memory, which an index counts.
            outcome = origin.write(originHead.span, memory.span.extracting(first: Int(count)))
        } else {
            outcome = origin.write(originHead.span)
        }
        guard note(outcome) else { return writeFailed(origin) }
        return flow.headSent()
    }

    /// Sends the next bytes of content that is held.
    func sendHeld(from offset: UInt64) -> Flow.Action {
        guard let origin, let held = content.heldBody else { return .none }
        var out = lane.takeOutput()
        defer { lane.giveBack(&out) }
        do throws(SocketError) {
            // Bytes that are held are counted by an index.
            try held.read(from: Int(offset), into: &out, max: Lane.inputBytes)
        } catch {
            record.note(problem: "spill: \(error)")
            return flow.heldUnreadable()
        }
        origin.append(out.span)
        guard note(origin.flush()) else { return writeFailed(origin) }
        return flow.heldSent(out.count)
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

    /// Sends what was read of content that streams.
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

    /// Tells the machine where bytes wait, and gives the server time for them; `false` when they
    /// could not be sent.
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

    /// The server has so much time to take what waits for it.
    func watchOrigin() { origin?.setDeadline(milliseconds: settings.timeouts.responseIdle) }

    /// Bytes could not be sent. The origin may have answered and closed before it read them.
    private func writeFailed(_ connection: OriginStream) -> Flow.Action {
        flow.writeFailed(isUntouched: connection.sentNothing)
    }

    /// Reads what the server said before its connection broke.
    func readLastWords() -> Flow.Action {
        guard let connection = origin else { return .none }
        connection.expectInput()
        originReadable(connection)
        guard origin === connection else { return .none }
        return flow.lastWordsRead(heard(on: connection), retryBudget)
    }

    func heard(on connection: OriginStream) -> Flow.Heard {
        connection.hasReceivedNothing ? .nothing : .something
    }

    /// Lets go of the connection and connects once more.
    func retry(
        _ why: Flow.Retry,
        _ release: Release,
        _ attempt: Attempt
    ) -> Flow.Action {
        switch why {
        case .unsent: break
        case .broken: proxy.tally.add(.originFailures)
        case .timedOut: proxy.tally.add(.originTimeouts)
        }
        proxy.tally.add(.retries)
        self.release(release)
        countRetry(of: settings.origins[originPlace].state)
        return .connect(attempt)
    }

    /// Whether the origin has retries left, and the request time for one.
    var retryBudget: Flow.RetryBudget {
        guard lane.now < record.respondBy else { return .spent }
        let place = originPlace
        return settings.origins[place].state.mayRetry(settings.origins[place].retries)
            ? .left : .spent
    }

    /// The request is out; the response must begin in time.
    func awaitResponse(_ output: Output, _ held: Flow.HeldContent) {
        endRequest(output, held)
        let now = lane.now
        let left = record.respondBy > now ? record.respondBy - now : 0
        origin?.setDeadline(milliseconds: min(settings.origins[originPlace].firstByteTimeout, left))
        client?.expectNothing()
    }

    /// The request is out; where nothing of it waits, the connection may end in order.
    func endRequest(_ output: Output, _ held: Flow.HeldContent) {
        if case .drop = held { dropContent() }
        if case .clear = output { origin?.resetsOnClose = false }
    }

    /// Lets go of the origin's side.
    func release(_ release: Release) {
        let side = side
        self.side = .none
        switch side {
        case .none: break
        case .dialing(let dial):
            record.lastTried = dial.lastServer
            dial.cancel()
            record.queued &+= dial.waited
        case .connected(let stream): letGo(of: stream, release)
        }
    }

    private func letGo(of stream: OriginStream, _ release: Release) {
        switch release {
        case .none, .close:
            stream.resetsOnClose = false
            stream.release(isReusable: false, idleTime: 0, idleMax: 0)
        case .reset: stream.reset()
        case .pool:
            stream.resetsOnClose = false
            stream.release(
                isReusable: !proxy.isDraining,
                idleTime: settings.timeouts.poolIdle,
                idleMax: settings.limits.pooledMax
            )
        }
    }
}

extension Exchange {
    /// Remembers how long the request waited for a place at a server.
    private func noteWait() {
        if case .dialing(let dial) = side { record.queued &+= dial.waited }
    }
}

// What the connection tells. That of a connection which the request has left comes late.
extension Exchange: OriginStreamOwner {
    func originConnected(_ connection: OriginStream) {
        noteWait()
        perform(connected(connection))
    }

    func originUnreachable(_ fault: DialFault, _ server: OriginServer?) {
        noteWait()
        perform(unreachable(fault, server))
    }

    func originDrained(_ connection: OriginStream) {
        guard origin === connection else { return }
        // What the server has taken now says nothing about its response.
        if !flow.hasResponse { connection.setDeadline(milliseconds: nil) }
        perform(flow.originDrained())
        if flow.hasResponse { origin?.resumeReading() }
    }

    func originWriteFailed(_ connection: OriginStream) {
        guard origin === connection else { return }
        perform(writeFailed(connection))
    }

    func originTimedOut(_ connection: OriginStream) {
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

// Which requests go to the same server.
extension Exchange {
    /// The same for requests that go to the same server, where the origin's balance goes by a hash.
    var affinity: UInt64 {
        switch settings.origins[originPlace].balance {
        case .roundRobin, .leastRequests: 0
        case .hash(.address): account.address.affinity
        case .hash(.key): keyAffinity ?? account.address.affinity
        }
    }

    /// Only of a key that has proven the request: a name alone would let a client choose its
    /// server.
    private var keyAffinity: UInt64? {
        guard let (ruling, _) = flow.judgement.verdict, ruling.verdict == .pass,
            let keyID = ruling.keyID
        else { return nil }
        // A digest has 32 bytes; any eight of them are spread evenly.
        let bytes = keyID.digest.bytes.span
        return (0..<8).reduce(0) { $0 << 8 | UInt64(bytes[$1]) }
    }
}

extension IPAddress {
    fileprivate var affinity: UInt64 {
        switch self {
        case .v4(let address): UInt64(address)
        case .v6(let high, let low): high ^ low
        }
    }
}
