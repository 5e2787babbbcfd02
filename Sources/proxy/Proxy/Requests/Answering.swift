import AppAttest
import EventLoops
import HTTPWire
import Rules
import Services
import Telemetry
import Verification

/// What the client of a request gets beside an origin's response: the gateway's own answer, notes
/// in the response's head, or a tunnel.
struct Answering {
    private let exchange: ExchangeState

    init(_ exchange: ExchangeState) { self.exchange = exchange }

    private var proxy: ProxyLoop { exchange.proxy }

    // MARK: The gateway's own answer

    /// The response for a reply of the machine.
    func response(to reply: Reply) -> LocalResponse {
        switch reply {
        case .refused(let refusal), .declined(let refusal): problem(refusal)
        case .malformed(let reason): LocalResponse(.malformed(reason))
        case .unreached(let failure), .failed(let failure): LocalResponse(.failed(failure))
        case .contentTimeout: LocalResponse(.fault(.bodyTimeout))
        case .loopDetected: LocalResponse(.fault(.loopDetected))
        case .lastHop: LocalResponse(empty: .lastHop)
        case .allowed: allowance()
        case .service: exchange.serviceCall.response
        }
    }

    private func problem(_ refusal: Refusal) -> LocalResponse {
        let outcome = LocalOutcome.refused(refusal)
        var details = LocalResponse.Details()
        if outcome.row.nextStep == .signAgain { details.challenge = proxy.challenge() }
        // A rule that judges nothing has no refusal that says how to sign.
        details.signing = exchange.flow.rule.notice.challengeParameters
        if refusal == .addressThrottled {
            details.waitSeconds = Int(exchange.account.wait / 1_000_000_000) + 1
        } else if case .over(let wait) = exchange.flow.verdictState.rate {
            // Rounded up: a second is the unit of Retry-After (RFC 9110 §10.2.3).
            details.waitSeconds = Int(clamping: wait / 1_000_000_000 + 1)
        }
        return LocalResponse(outcome, details)
    }

    /// The answer to the proxy that has asked: it may forward the request. The answer has the
    /// fields for the origin, and the client's kind of proof.
    private func allowance() -> LocalResponse {
        exchange.originHead.tellVerdict(for: exchange)
        if case .decision(let form, _) = exchange.flow.purpose, form.namesRemoved {
            exchange.originHead.nameRemoved(for: exchange)
        }
        return LocalResponse(allowing: exchange.originHead.bytes, notes: notes)
    }

    // MARK: Notes

    /// Fields for the client in the response to an admitted request: the next challenge, and what
    /// the client has to do before the rule can be enforced for it.
    private var notes: [(name: StaticString, value: String)] {
        let rule = exchange.flow.rule
        if case .off = rule.mode { return [] }
        var fields: [(name: StaticString, value: String)] = []
        // Parts of the verdict are read one by one: all of it is large to copy.
        if let refusal = exchange.flow.refusal,
            let next = rule.notice.nextStep(after: refusal, of: exchange.flow.verdictState.keyID)
        {
            fields.append(("App-Attest-Next", next))
        }
        guard rule.sendsNextChallenge else { return fields }
        // A session needs no challenge, and its requests should cost little.
        if exchange.flow.verdictState.isPass, exchange.flow.verdictState.proof == .session {
            return fields
        }
        fields.append(("App-Attest-Challenge", proxy.challenge()))
        return fields
    }

    /// The notes for an origin's response. None where a shared cache may keep the response: other
    /// clients would get them.
    func notes(
        in head: borrowing ResponseHead,
        _ bytes: Span<UInt8>
    ) -> [(name: StaticString, value: String)] {
        let fields = notes
        let method = exchange.flow.facts.method
        return fields.isEmpty || head.mayBeShared(bytes, answering: method) ? [] : fields
    }

    // MARK: A tunnel

    /// Makes a tunnel of both connections. It writes its line of the log when it ends.
    ///
    /// - head: the origin's 101.
    /// - rest: what came after it.
    func beginTunnel(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        rest: Span<UInt8>
    ) {
        guard let client = exchange.client, let origin = exchange.origin else { return }
        let exchange = exchange
        let idle = exchange.settings.timeouts.tunnelIdle
        let certificate = client.peer.certificate
        let tunnel = Tunnel(idleMilliseconds: idle, isUnix: client.peer.isUnix) { carried in
            exchange.proxy.tally.add(.tunnelsClosed)
            LogLine(
                exchange: exchange,
                requestBytes: carried.fromClient,
                responseBytes: carried.fromOrigin,
                certificate: certificate
            ).write()
        }
        guard let (stream, early) = client.upgrade(head, bytes, behind: rest, to: tunnel)
        else { return }
        proxy.tally.add(.tunnels)
        exchange.flow.tunnelBegan()
        Audit(exchange).count()
        if let recording = exchange.settings.options.tracing {
            Audit(exchange).tellSpans(recording)
        }
        exchange.letGo()
        tunnel.begin(
            stream,
            origin.becomeTunnel(of: tunnel),
            fromClient: early,
            fromOrigin: rest.count
        )
    }
}

extension ClientNotice {
    /// The next step of a client whose request was forwarded although it would be refused; `nil`
    /// where the client can't do anything.
    ///
    /// The field names the key that is to be replaced: the client's own cache may answer a later
    /// request, of another key, with the same field. It says why where the fault is the session's:
    /// a client can't tell from a good answer that its session has ended.
    fileprivate func nextStep(after refusal: Refusal, of keyID: KeyID?) -> String? {
        switch refusal {
        // A client that has not sent a token learns from this field that the rule asks for one, and
        // one that signs other bytes learns what the rule signs.
        case .deviceTokenMissing, .proofMissing, .signatureMismatch: return signAgain
        default: break
        }
        return switch refusal.row.answer.nextStep {
        case .enrol: enrol + (keyID.map { ";key=\"\($0.base64)\"" } ?? "")
        case .signAgain: signAgain + (refusal.isOfSession ? ";error=\"\(refusal.rawValue)\"" : "")
        case .getToken, .fixClient, .none, .retryLater, .unsaid: nil
        }
    }
}

extension Refusal {
    /// Whether the client's next request has to go without the session.
    fileprivate var isOfSession: Bool {
        switch self {
        case .sessionUnknown, .sessionExpired, .sessionMismatch, .sessionRefused: true
        default: false
        }
    }
}
