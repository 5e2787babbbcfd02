import Challenges
import HTTPWire
import Lanes
import Rules
import Telemetry
import Verification

// The response on its way to the client.
extension Exchange {
    /// Content of so many octets is copied behind the head: cheaper than to hand the kernel two
    /// pieces.
    private static let copiedMax = 1024

    /// Reads the origin when the client takes what comes: once, then it is the turn of the lane's
    /// other connections.
    func originReadable(_ connection: OriginConnection) {
        var hasRead = false
        while isUnderWay, origin === connection, let client, client.unsentBytes == 0 {
            if hasRead { return connection.resumeReading() }
            hasRead = true
            switch connection.read() {
            case .octets(let octets):
                if hasResponse {
                    var out = proxy.takeOutput()
                    relay(octets.span, from: 0, behind: &out)
                } else if connection.inbox.isEmpty {
                    takeResponse(octets.span, connection)
                } else {
                    connection.inbox.append(contentsOf: octets)
                    let all = connection.inbox
                    takeResponse(all.span, connection)
                }
            case .wouldBlock: return
            case .ended: return originEnded(connection)
            case .failed: return originBroke(connection)
            }
        }
    }

    /// Looks for a head; interim ones are passed on.
    private func takeResponse(_ octets: Span<UInt8>, _ connection: OriginConnection) {
        var start = 0
        do throws(Malformed) {
            while true {
                let rest = octets.extracting(droppingFirst: start)
                guard
                    case .complete(let range) = try connection.scanner.scan(
                        rest,
                        limits: settings.limits.responseHead
                    )
                else {
                    if start > 0 || connection.inbox.isEmpty {
                        connection.inbox = rest.withUnsafeBufferPointer { Array($0) }
                    }
                    return
                }
                let head = rest.extracting(range)
                try proxy.responseHead.read(
                    head,
                    to: method,
                    upgradeSent: asksUpgrade,
                    limits: settings.limits.responseHead
                )
                start += range.upperBound
                connection.scanner = HeadScanner(.response)
                guard proxy.responseHead.isInterim else {
                    connection.inbox = []
                    return beginResponse(head, octets, from: start, connection)
                }
                interimCount += 1
                guard interimCount <= settings.limits.interimResponsesMax else {
                    proxy.tally.add(.originMalformed)
                    return fail(.tooManyInterimResponses)
                }
                guard relayInterim(head) else { return }
            }
        } catch {
            proxy.tally.add(.originMalformed)
            problem = error.reason.rawValue
            fail(.responseMalformed)
        }
    }

    /// RFC 9110 §15.2: interim responses are passed on, but never to an HTTP/1.0 client. The 100
    /// that the gateway has given itself is not given twice: it sent no Expect.
    private func relayInterim(_ head: Span<UInt8>) -> Bool {
        guard let client, version == .http11 else { return client != nil }
        guard proxy.responseHead.status != 100 || awaitsContinue else { return true }
        awaitsContinue = false
        var out = proxy.takeOutput()
        defer { proxy.giveBack(&out) }
        HeadWriter.beginResponse(proxy.responseHead, head, HeadWriter.ResponseOptions(), into: &out)
        HeadWriter.endHead(into: &out)
        guard case .failed = client.write(out.span) else { return true }
        client.close()
        return false
    }

    private func beginResponse(
        _ head: Span<UInt8>,
        _ octets: Span<UInt8>,
        from start: Int,
        _ connection: OriginConnection
    ) {
        status = proxy.responseHead.status
        proxy.tally.add(.firstByte, nanoseconds: MonotonicClock.nanoseconds &- sentAt)
        if status == 101 { return beginTunnel(head, octets, from: start, connection) }
        hasResponse = true
        response = BodyReader(proxy.responseHead.framing, limits: settings.limits.responseHead)
        authenticatesConnection =
            authenticatesConnection || proxy.responseHead.fields.authenticatesConnection(head)
        keepsOrigin =
            proxy.responseHead.isPersistent && !isolatesContent && !authenticatesConnection
        // The request will not be sent once more.
        if case .done = upload { dropHeld() }
        clientFraming = framingForClient(proxy.responseHead.framing)
        acceptsTrailers = acceptsTrailers && proxy.responseHead.fields.mayHaveTrailers
        if clientFraming == .untilClose { closesClient = true }
        // An answer before the end of the request: the rest is not waited for.
        if case .done = upload {} else { closesClient = true }
        if proxy.isDraining { closesClient = true }
        var options = HeadWriter.ResponseOptions()
        options.framing = clientFraming
        options.date = proxy.date
        options.connection = isPersistent && !closesClient ? .keep : .close
        var out = proxy.takeOutput()
        HeadWriter.beginResponse(proxy.responseHead, head, options, into: &out)
        writeNextChallenge(into: &out)
        HeadWriter.endHead(into: &out)
        relay(octets, from: start, behind: &out)
    }

    /// How the content goes to the client: as it came, save that HTTP/1.0 has no chunks and that
    /// HTTP/1.1 needs no close to know the end.
    private func framingForClient(_ framing: BodyFraming) -> BodyFraming {
        switch framing {
        case .none, .length: framing
        case .chunked, .untilClose: version == .http11 ? .chunked : .untilClose
        }
    }

    private func writeNextChallenge(into out: inout [UInt8]) {
        guard rule.mode != .off, rule.sendsNextChallenge else { return }
        let challenge = proxy.enrolment.challenge(.assertion, now: proxy.wallSeconds)
        HeadWriter.field("App-Attest-Challenge", text: challenge, into: &out)
    }

    /// Passes content on, behind what is still to be sent, and gives `out` back to the lane.
    private func relay(_ octets: Span<UInt8>, from start: Int, behind out: inout [UInt8]) {
        guard let client else { return }
        var position = start
        var chunk = ChunkGatherer()
        var plain = 0..<0
        let countBefore = response.contentCount
        var fault: Malformed.Reason?
        reading: while true {
            do throws(Malformed) {
                switch try response.read(octets, from: &position) {
                case .content(let range):
                    if clientFraming == .chunked {
                        chunk.add(octets.extracting(range), to: &out)
                    } else if response.framing == .chunked || range.count <= Self.copiedMax {
                        octets.extracting(range).withUnsafeBufferPointer {
                            out.append(contentsOf: $0)
                        }
                    } else {
                        plain = range
                    }
                case .needMore, .finished: break reading
                }
            } catch {
                fault = error.reason
                break reading
            }
        }
        chunk.finish(in: &out)
        proxy.tally.add(.downloadBytes, response.contentCount - countBefore)
        if response.isFinished, fault == nil, clientFraming == .chunked {
            // RFC 9110 §6.5.1: for who said that it takes trailers.
            if acceptsTrailers {
                ChunkWriter.end(with: response.trailers, into: &out)
            } else {
                ChunkWriter.end(into: &out)
            }
        }
        // RFC 9112 §6.3 ¶2: more than was announced is no part of any response.
        if response.isFinished, position < octets.count { keepsOrigin = false }
        var outcome = Connection.WriteOutcome.sent
        if !out.isEmpty || !plain.isEmpty {
            outcome = client.write(out.span, octets.extracting(plain))
        }
        proxy.giveBack(&out)
        if case .failed = outcome { return client.close() }
        if let fault {
            proxy.tally.add(.originMalformed)
            problem = fault.rawValue
            return cutOff()
        }
        if case .queued = outcome { client.watchOutput() }
        if response.isFinished {
            responseMayEnd()
        } else {
            origin?.setDeadline(milliseconds: settings.timeouts.responseIdle)
        }
    }

    /// Ends the exchange when the response is complete; an unfinished request is not waited for.
    func responseMayEnd() {
        guard hasResponse, response.isFinished else { return awaitResponse() }
        if case .done = upload {} else { upload = .abandoned }
        releaseOrigin(reusable: keepsOrigin)
        finish()
    }

    private func beginTunnel(
        _ head: Span<UInt8>,
        _ octets: Span<UInt8>,
        from start: Int,
        _ connection: OriginConnection
    ) {
        guard let client else { return }
        var options = HeadWriter.ResponseOptions()
        options.connection = .upgrade
        var out = proxy.takeOutput()
        HeadWriter.beginResponse(proxy.responseHead, head, options, into: &out)
        HeadWriter.endHead(into: &out)
        let outcome = client.write(out.span, octets.extracting(droppingFirst: start))
        proxy.giveBack(&out)
        if case .failed = outcome { return client.close() }
        proxy.tally.add(.tunnels)
        let early = client.inbox
        client.inbox = []
        origin = nil
        let tunnel = Tunnel(
            client,
            connection,
            idleMilliseconds: settings.timeouts.tunnelIdle
        )
        connection.state = .tunnel(tunnel)
        client.becomeTunnel(tunnel)
        endAsTunnel()
        tunnel.begin(fromClient: early)
    }

    func originDrained() {
        if !hasResponse { origin?.setDeadline(milliseconds: nil) }
        switch upload {
        case .streaming: pumpUpload()
        case .replaying: replayHeld()
        // Only now the origin has all of the request.
        case .done: awaitResponse()
        case .waiting, .holding, .collecting, .abandoned: break
        }
        if let origin, hasResponse { origin.resumeReading() }
    }
}
