import AppAttest
import ClientStreams
import HTTPWire
import Lanes
import Origins
import Rules
import Services
import TLSSession
import Telemetry
import Verification

// The response on its way to the client.
extension Exchange {
    /// Reads the origin when the client takes what comes: once, then it is the turn of the lane's
    /// other connections.
    func originReadable(_ connection: OriginStream) {
        var hasRead = false
        while origin === connection, let client, client.unsentBytes == 0 {
            if hasRead { return connection.resumeReading() }
            hasRead = true
            let before = record.responseBytes
            connection.inputMax = client.readMax
            let read = connection.receive(for: self)
            proxy.tally.add(.downloadBytes, record.responseBytes - before)
            switch read {
            case .some:
                guard flow.hasResponse else { break }
                if case .closed = client.flush() { return }
                watchOrigin()
            case .complete:
                // RFC 9110 §6.5.1: for clients that said that they take trailers.
                client.endContent(flow.passesTrailers ? connection.trailers : nil)
                if case .closed = client.flush() { return }
                return perform(flow.responseEnded())
            case .none, .stopped: return
            case .broke:
                if let failure = connection.tlsFault { record.originTLS = failure.reason }
                if flow.hasResponse { client.flush() }
                return perform(flow.originBroke(heard(on: connection), retryBudget))
            case .malformed(let reason):
                // What came before the fault is the client's.
                if flow.hasResponse { client.flush() }
                return perform(flow.responseMalformed(.malformed(reason)))
            case .tooManyInterim:
                return perform(flow.responseMalformed(.tooManyInterimResponses))
            }
        }
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
        record.status = head.status
        let waited = MonotonicClock.nanoseconds &- record.sentAt
        proxy.tally.addFirstByte(rule: flow.rule.index, nanoseconds: waited)
        origin?.waited = waited
        if head.fields.contains(.appAttestDeviceBits) { takeDeviceBits(head, octets) }
        switch flow.responseBegan(ResponseKind(head, octets)) {
        case .relay(let start, let held):
            if case .drop = held { dropContent() }
            if case .early = start { client?.endAfterResponse() }
            client?.beginResponse(head, octets, adding: notes(head, octets))
            return true
        case .beginTunnel:
            beginTunnel(head, octets, rest)
            return false
        case let other:
            preconditionFailure("Exchange: \(other) at the head of a response")
        }
    }

    func originContent(_ piece: Span<UInt8>) {
        record.responseBytes &+= UInt64(piece.count)
        client?.append(piece)
    }

    /// What the gateway tells the client in an origin's response: the next challenge, and what the
    /// client has to do before the rule can be enforced for it.
    ///
    /// Nothing where a shared cache may keep the response: other clients would get it.
    private func notes(
        _ head: borrowing ResponseHead,
        _ octets: Span<UInt8>
    ) -> [(name: StaticString, value: String)] {
        let notes = notesToClient
        guard !notes.isEmpty, !head.mayBeShared(octets, answering: flow.facts.method)
        else { return [] }
        return notes
    }

    /// The same, whatever the response says to caches.
    var notesToClient: [(name: StaticString, value: String)] {
        let rule = flow.rule
        guard rule.mode != .off else { return [] }
        let next = flow.judgement.refusal.flatMap { refusal in
            let keyID = flow.judgement.verdict?.ruling.keyID
            return rule.notice.nextStep(after: refusal, of: keyID)
        }
        let sendsChallenge = rule.sendsNextChallenge && !isProvenBySession
        var notes: [(name: StaticString, value: String)] = []
        if let next { notes.append(("App-Attest-Next", next)) }
        if sendsChallenge { notes.append(("App-Attest-Challenge", proxy.challenge())) }
        return notes
    }

    /// A session needs no challenge, and its requests are to cost little.
    private var isProvenBySession: Bool {
        guard let (ruling, _) = flow.judgement.verdict else { return false }
        return ruling.proof == .session && ruling.verdict == .pass
    }

    /// Hands both connections to a tunnel, which outlives the request.
    private func beginTunnel(
        _ head: borrowing ResponseHead,
        _ octets: Span<UInt8>,
        _ rest: Span<UInt8>
    ) {
        guard let client, let origin else { return }
        let tunnel = Tunnel(idleMilliseconds: settings.timeouts.tunnelIdle) { [self] carried in
            proxy.tally.add(.tunnelsClosed)
            Audit(self).writeLine(
                requestBytes: carried.fromClient,
                responseBytes: carried.fromOrigin
            )
        }
        guard let (stream, early) = client.upgrade(head, octets, behind: rest, to: tunnel)
        else { return }
        proxy.tally.add(.tunnels)
        flow.tunnelBegan()
        Audit(self).count()
        letGo()
        tunnel.begin(
            stream,
            origin.becomeTunnel(of: tunnel),
            fromClient: early,
            fromOrigin: rest.count
        )
    }
}

extension ClientNotice {
    /// What a client has to do whose request was forwarded although it would be refused, where it
    /// can do anything.
    ///
    /// The key that is to be enrolled anew is named: the client's own cache may answer a later
    /// request, of another key, with the same field.
    fileprivate func nextStep(after refusal: Refusal, of keyID: KeyID?) -> String? {
        // A client that has not sent a token learns here that the rule asks for one.
        if refusal == .deviceTokenMissing { return signAgain }
        return switch LocalOutcome.refused(refusal).row.nextStep {
        case .enrol: enrol + (keyID.map { ";key=\"\($0.base64)\"" } ?? "")
        case .signAgain: signAgain
        case .fixClient, .none, .retryLater, .unsaid: nil
        }
    }
}

/// Two streams after an upgrade: bytes pass in both directions until both have ended.
final class Tunnel: ByteStreamOwner {
    /// Both streams hold the tunnel as long as they live, so it lets go of them at its end: `nil`
    /// from then on.
    private var sides: (client: any ByteStream, origin: any ByteStream)?
    private let idleMilliseconds: UInt64
    private var clientEnded = false
    private var originEnded = false
    private var carried = Carried()
    /// Told once, when both sides are closed.
    private let ended: (Carried) -> Void

    /// Bytes that a tunnel has carried.
    struct Carried {
        var fromClient: UInt64 = 0
        var fromOrigin: UInt64 = 0
    }

    init(idleMilliseconds: UInt64, ended: @escaping (Carried) -> Void) {
        self.idleMilliseconds = idleMilliseconds
        self.ended = ended
    }

    /// Sends the bytes that the client had sent before the tunnel stood.
    ///
    /// - behind: bytes of the origin that came with its response, and were sent with it.
    func begin(
        _ client: any ByteStream,
        _ origin: any ByteStream,
        fromClient early: [UInt8],
        fromOrigin behind: Int
    ) {
        carried = Carried(fromClient: UInt64(early.count), fromOrigin: UInt64(behind))
        sides = (client, origin)
        origin.setDeadline(milliseconds: nil)
        touch()
        if !early.isEmpty, case .failed = origin.write(early.span) { return end() }
        client.resumeReading()
        origin.resumeReading()
    }

    /// Passes on what one side has sent, when the other takes it: one read, then it is the turn of
    /// the lane's other connections.
    func readable(_ source: any ByteStream) {
        guard let target = other(than: source), target.unsentBytes == 0 else { return }
        switch source.read() {
        case .octets(let bytes):
            touch()
            if source === sides?.client {
                carried.fromClient += UInt64(bytes.count)
            } else {
                carried.fromOrigin += UInt64(bytes.count)
            }
            if case .failed = target.write(bytes.span) { return end() }
            if target.unsentBytes == 0 { source.resumeReading() }
        case .wouldBlock: return
        case .ended: return ended(source, target)
        case .failed: return end()
        }
    }

    func drained(_ target: any ByteStream) {
        touch()
        other(than: target)?.resumeReading()
    }

    private func other(than side: any ByteStream) -> (any ByteStream)? {
        sides.map { $0.client === side ? $0.origin : $0.client }
    }

    private func ended(_ source: any ByteStream, _ target: any ByteStream) {
        let isClient = source === sides?.client
        guard isClient ? !clientEnded : !originEnded else { return }
        if isClient { clientEnded = true } else { originEnded = true }
        target.shutDownOutput()
        if clientEnded, originEnded { end() }
    }

    /// One side is gone in both directions. Behind the origin's end that is the client's own end,
    /// and what it sent before is still to be read.
    func broke(_ stream: any ByteStream) {
        if !originEnded { end() }
    }

    func failed(_ stream: any ByteStream) { end() }

    func closed(_ stream: any ByteStream) { end() }

    private func touch() { sides?.client.setDeadline(milliseconds: idleMilliseconds) }

    /// Closes both sides.
    private func end() {
        guard let (client, origin) = sides else { return }
        sides = nil
        origin.close()
        client.close()
        ended(carried)
    }
}
