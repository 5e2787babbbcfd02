import Challenges
import ClientStreams
import HTTPWire
import Lanes
import Origins
import Rules
import Telemetry
import Verification

// The response on its way to the client.
extension Exchange {
    /// Reads the origin when the client takes what comes: once, then it is the turn of the lane's
    /// other connections.
    func originReadable(_ stream: OriginStream) {
        var hasRead = false
        while isUnderWay, origin === stream, let client, client.unsentBytes == 0 {
            if hasRead { return stream.resumeReading() }
            hasRead = true
            let before = responseCount
            let read = stream.receive(for: self)
            proxy.tally.add(.downloadBytes, responseCount - before)
            switch read {
            case .some:
                guard hasResponse else { break }
                if case .closed = client.flush() { return }
                stream.setDeadline(milliseconds: settings.timeouts.responseIdle)
            case .complete:
                isResponseComplete = true
                // RFC 9110 §6.5.1: for clients that said that they take trailers.
                client.endContent(acceptsTrailers ? stream.trailers : nil)
                if case .closed = client.flush() { return }
                return responseMayEnd()
            case .none, .stopped: return
            case .broke:
                if hasResponse { client.flush() }
                return originBroke(stream)
            case .malformed(let reason): return responseMalformed(reason)
            case .tooManyInterim:
                proxy.tally.add(.originMalformed)
                return fail(.tooManyInterimResponses)
            }
        }
    }

    private func responseMalformed(_ reason: Malformed.Reason) {
        proxy.tally.add(.originMalformed)
        problem = reason.rawValue
        guard hasResponse else { return fail(.responseMalformed) }
        // What came before the fault is the client's.
        client?.flush()
        cutOff()
    }

    func originInterim(_ head: borrowing ResponseHead, _ octets: Span<UInt8>) -> Bool {
        client?.sendInterim(head, octets)
        return isUnderWay
    }

    func originResponded(
        _ head: borrowing ResponseHead,
        _ octets: Span<UInt8>,
        rest: Span<UInt8>
    ) -> Bool {
        status = head.status
        proxy.tally.add(.firstByte, nanoseconds: MonotonicClock.nanoseconds &- sentAt)
        guard status != 101 else {
            beginTunnel(head, octets, rest)
            return false
        }
        hasResponse = true
        authenticatesConnection =
            authenticatesConnection || head.fields.authenticatesConnection(octets)
        // The request will not be sent once more.
        if case .done = upload { dropHeld() }
        acceptsTrailers = acceptsTrailers && head.fields.mayHaveTrailers
        client?.beginResponse(head, octets, adding: nextChallenge())
        return true
    }

    func originContent(_ piece: Span<UInt8>) {
        responseCount &+= UInt64(piece.count)
        client?.append(piece)
    }

    private func nextChallenge() -> [(name: StaticString, value: String)] {
        guard rule.mode != .off, rule.sendsNextChallenge else { return [] }
        let challenge = proxy.enrolment.challenge(.assertion, now: proxy.wallSeconds)
        return [("App-Attest-Challenge", challenge)]
    }

    /// Ends the exchange when the response is complete; an unfinished request is not waited for.
    func responseMayEnd() {
        guard isResponseComplete else { return awaitResponse() }
        if case .done = upload {} else { upload = .abandoned }
        releaseOrigin(reusable: true)
        finish()
    }

    private func beginTunnel(
        _ head: borrowing ResponseHead,
        _ octets: Span<UInt8>,
        _ rest: Span<UInt8>
    ) {
        guard let client, let origin else { return }
        let tunnel = Tunnel(idleMilliseconds: settings.timeouts.tunnelIdle) { [self] carried in
            proxy.tally.add(.tunnelsClosed)
            writeLine(requestBytes: carried.fromClient, responseBytes: carried.fromOrigin)
        }
        guard
            let (stream, early) = client.upgrade(head, octets, behind: rest, to: tunnel)
        else { return }
        proxy.tally.add(.tunnels)
        self.origin = nil
        endAsTunnel()
        tunnel.begin(
            stream,
            origin.becomeTunnel(of: tunnel),
            fromClient: early,
            fromOrigin: rest.count
        )
    }

    func originDrained(_ stream: OriginStream) {
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
