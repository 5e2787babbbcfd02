import Dispatch
import EventLoops
import HTTPWire
import Rules
import Services
import Telemetry
import Verification

/// The request on its way to a server, and its response on its way back.
struct Relay {
    private let exchange: Exchange

    init(_ exchange: Exchange) { self.exchange = exchange }

    private var proxy: ProxyLoop { exchange.proxy }
    private var settings: ProxySettings { exchange.settings }
    private var origin: (any OriginStream)? { exchange.side.stream }

    func connect(_ attempt: Attempt) -> Flow.Action {
        let place = exchange.originPlace
        let isFirst = attempt == .first
        if isFirst {
            let time = settings.origins[place].rules.totalTimeout
            exchange.side.begin(now: exchange.loop.now, milliseconds: time == 0 ? .max : time)
        }
        let demand = OriginPool.Demand(
            flow: exchange.client?.flow ?? 0,
            affinity: settings.origins[place].rules.balance.affinity(
                of: exchange.account.address,
                passed: exchange.flow.verdictState.passedKey
            ),
            reusesIdle: isFirst,
            ends: endsForOrigin,
            group: SharingGroup(
                isProven: exchange.flow.verdictState.isPass,
                headCount: exchange.originHead.bytes.count
            ),
            avoided: isFirst ? nil : exchange.side.servedBy?.server,
            end: exchange.side.respondBy
        )
        switch exchange.pools[place].connect(for: exchange, demand) {
        case .connected(let stream): return connected(stream)
        case .dialing(let dial):
            exchange.side.dials(dial)
            return .none
        case .failed(let why): return unreached(why)
        }
    }

    /// No server took a connection.
    func unreached(_ why: Unreached) -> Flow.Action {
        exchange.side.failed(why)
        return exchange.flow.connectFailed(why.failure)
    }

    /// Both ends of the client's connection, where the origin wants to know them before the
    /// request. The port is known when the client itself is connected, and not when a proxy names
    /// it.
    private var endsForOrigin: OriginPreface.Ends? {
        guard case .proxyHeader = settings.origins[exchange.originPlace].preface,
            let (port, own) = exchange.client?.socketEnds
        else { return nil }
        let isPeer = exchange.account.address == exchange.peer.address && !exchange.peer.isUnix
        return (
            ProxyHeader.End(exchange.account.address, port: isPeer ? port : 0),
            ProxyHeader.End(own.ipAddress, port: own.port ?? 0)
        )
    }

    /// The connection accepts bytes.
    func connected(_ connection: any OriginStream) -> Flow.Action {
        exchange.side.connected(connection, at: MonotonicClock.nanoseconds)
        connection.begin(
            exchange.flow.facts,
            framing: exchange.framingForOrigin,
            limits: settings.responseLimits
        )
        let inMemory = min(exchange.content.heldBody?.memory.count ?? 0, EventLoop.inputBytes)
        return exchange.flow.connected(
            connection.isReused ? .reused : .fresh,
            inMemory: UInt64(inMemory),
            clientSent: exchange.client?.hasWholeContent == true ? .whole : .partial,
            retriesMax: settings.origins[exchange.originPlace].rules.retries.max,
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
            try exchange.content.heldBody?.checkFile()
        } catch {
            exchange.record.note(problem: "spill: \(error)")
            return exchange.flow.heldUnreadable()
        }
        let head = exchange.originHead.bytes
        let memory = count > 0 ? exchange.content.heldBody?.memory ?? [] : []
        let outcome = origin.sendHead(
            head.span,
            // At most the bytes in memory, which an index can count.
            memory.span.extracting(first: Int(count)),
            isWhole: ending == .inOrder
        )
        guard note(outcome) else { return writeFailed(origin) }
        return exchange.flow.headSent()
    }

    /// Sends the next bytes of held content.
    func sendHeld(from offset: UInt64) -> Flow.Action {
        guard let origin, let held = exchange.content.heldBody else { return .none }
        var out = exchange.loop.takeOutput()
        defer { exchange.loop.giveBack(&out) }
        do throws(SocketError) {
            // An index can count held bytes.
            try held.read(from: Int(offset), into: &out, max: EventLoop.inputBytes)
            exchange.side.diskHasRead()
        } catch {
            return heldUnread(origin, error)
        }
        origin.append(out.span)
        guard note(origin.flush()) else { return writeFailed(origin) }
        return exchange.flow.heldSent(out.count)
    }

    /// Nanoseconds for which the rest of held content may wait for the disk: 30 s.
    private static let diskPatience: UInt64 = 30_000_000_000
    /// How long until the disk is asked again.
    private static let diskPause = DispatchTimeInterval.milliseconds(100)

    /// The disk does not give the next bytes. Where it is late, the server waits for them: some
    /// applications take a reset for the end of the content, and run with what they have (mod_php).
    private func heldUnread(_ connection: any OriginStream, _ fault: SocketError) -> Flow.Action {
        guard fault.isLate,
            exchange.side.diskIsLate(at: MonotonicClock.nanoseconds) < Self.diskPatience
        else {
            exchange.record.note(problem: "spill: \(fault)")
            return exchange.flow.heldUnreadable()
        }
        exchange.flow.originQueued()
        let waiting = LoopBound((exchange, connection), on: exchange.loop)
        exchange.loop.queue.asyncAfter(deadline: .now() + Self.diskPause) {
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
        exchange.dropContent()
        return exchange.flow.contentSent()
    }

    func sendContent(_ piece: Flow.Piece) -> Flow.Action {
        guard let origin else { return .none }
        if case .last = piece {
            Audit(exchange).verdictIsFinal()
            origin.endContent()
        }
        guard note(origin.flush()) else { return writeFailed(origin) }
        switch piece {
        case .more: return .none
        case .last: return exchange.flow.contentSent()
        }
    }

    /// Tells the machine where bytes wait, and starts the server's time for them; `false` when the
    /// bytes could not be sent.
    private func note(_ outcome: Connection.WriteOutcome) -> Bool {
        switch outcome {
        case .sent: return true
        case .queued:
            exchange.flow.originQueued()
            watchOrigin()
            return true
        case .failed: return false
        }
    }

    /// Starts the server's time to take the bytes that wait for it.
    func watchOrigin() { origin?.setDeadline(milliseconds: settings.timeouts.responseIdle) }

    /// Bytes could not be sent. The origin may have answered and closed before it read them.
    func writeFailed(_ connection: any OriginStream) -> Flow.Action {
        exchange.flow.writeFailed(isUntouched: connection.sentNothing)
    }

    /// Reads the bytes that the server sent before its connection broke, up to the head of its
    /// response: that may be longer than one read, and no event follows that brings the rest.
    func readLastWords() -> Flow.Action {
        guard let connection = origin else { return .none }
        connection.expectInput()
        while read(connection) {
            guard exchange.flow.hasResponse else { continue }
            connection.resumeReading()
            break
        }
        guard origin === connection else { return .none }
        return exchange.flow.lastWordsRead(heard(on: connection), retryBudget)
    }

    private func heard(on connection: any OriginStream) -> Leg.Heard {
        connection.hasReceivedNothing ? .nothing : .something
    }

    /// Releases the connection before the next attempt.
    func retry(_ why: Leg.Retry, _ release: Release) {
        switch why {
        case .unsent: break
        case .broken: proxy.tally.add(.originFailures)
        case .timedOut: proxy.tally.add(.originTimeouts)
        }
        proxy.tally.add(.retries)
        self.release(release)
        exchange.side.countRetry(of: settings.origins[exchange.originPlace].state)
    }

    /// Whether the origin has retries left, and the request has time for one.
    private var retryBudget: Leg.RetryBudget {
        let place = exchange.originPlace
        guard exchange.side.left(now: exchange.loop.now) > 0 else { return .spent }
        return settings.origins[place].state.mayRetry(settings.origins[place].rules.retries)
            ? .left : .spent
    }

    /// The request is sent; the response must begin in time.
    func awaitResponse(_ output: Output, _ held: Leg.HeldContent) {
        endRequest(output, held)
        let time = settings.origins[exchange.originPlace].rules.firstByteTimeout
        if let origin {
            let now = exchange.loop.now
            origin.givenAt = now
            origin.setDeadline(milliseconds: min(time, exchange.side.left(now: now)))
        }
        exchange.client?.expectNothing()
    }

    /// The request is sent. If no byte of it waits, the connection may end in order.
    func endRequest(_ output: Output, _ held: Leg.HeldContent) {
        if case .drop = held { exchange.dropContent() }
        if case .clear = output { origin?.requestTaken() }
    }

    /// Releases the origin's side.
    func release(_ release: Release) {
        switch exchange.side.leave() {
        case .none: break
        case .dialing(let dial):
            dial.cancel()
            exchange.side.note(dial)
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

    // MARK: The response

    /// The server's time is over.
    func timedOut(_ connection: any OriginStream, _ client: any ClientStream) -> Flow.Action {
        exchange.flow.originTimedOut(
            client: client.unsentBytes > 0 ? .queued : .clear,
            heard(on: connection),
            retryBudget
        )
    }

    /// Reads from the origin once, when the client takes the bytes.
    ///
    /// - Returns: whether bytes were read and the response continues.
    func read(_ connection: any OriginStream) -> Bool {
        guard origin === connection, let client = exchange.client, client.unsentBytes == 0 else {
            return false
        }
        let before = exchange.record.responseBytes
        connection.inputMax = client.readMax
        let read = connection.receive(for: exchange)
        proxy.tally.add(.downloadBytes, exchange.record.responseBytes - before)
        switch read {
        case .some:
            guard exchange.flow.hasResponse else { return true }
            if case .closed = client.flush() { return false }
            watchOrigin()
            return true
        case .complete:
            // RFC 9110 §6.5.1: only for clients that accept trailers.
            client.endContent(exchange.flow.leg?.passesTrailers == true ? connection.trailers : nil)
            if case .closed = client.flush() { return false }
            exchange.perform(exchange.flow.responseEnded())
        case .none, .stopped: break
        case .broke:
            if let failure = connection.tlsFault { exchange.side.tlsFailure = failure.reason }
            if exchange.flow.hasResponse { client.flush() }
            exchange.perform(exchange.flow.originBroke(heard(on: connection), retryBudget))
        case .refused: exchange.perform(exchange.flow.originRefused(retryBudget))
        case .malformed, .violated:
            // The client gets the bytes before the fault.
            if exchange.flow.hasResponse { client.flush() }
            exchange.record.note(problem: read.fault)
            exchange.perform(exchange.flow.responseMalformed(.responseMalformed))
        case .tooManyInterim:
            exchange.perform(exchange.flow.responseMalformed(.tooManyInterimResponses))
        }
        return false
    }
}
