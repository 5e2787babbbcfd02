import AppAttest
import EventLoops
import HTTPWire
import Rules
import Telemetry
import Verification

/// Asks other parties about a request: Apple about its device, and the parties that know its
/// tokens. They answer at once or later.
struct Querying {
    private let exchange: ExchangeState

    init(_ exchange: ExchangeState) { self.exchange = exchange }

    private var proxy: ProxyLoop { exchange.proxy }
    private var settings: ProxySettings { exchange.settings }

    /// Asks the party that knows the answer.
    func ask(_ query: RequestQuery) -> Flow.Action {
        switch query {
        case .device: askDevice()
        case .token(let proof): askToken(proof)
        }
    }

    /// Takes an answer on any thread. The client may have gone by then, or the time may be over.
    private func answerLater() -> @Sendable (QueryAnswer) -> Void {
        let since = MonotonicClock.nanoseconds
        let loop = exchange.loop
        let waiting = LoopBound(exchange, on: loop)
        return { answer in
            loop.perform { Querying(waiting.value).answered(answer, since: since) }
        }
    }

    private func answered(_ answer: QueryAnswer, since: UInt64) {
        switch answer {
        case .device(let finding): note(finding, since: since)
        case .token(let proof, let finding):
            proxy.commits.stored(exchange)
            note(finding, of: proof, since: since)
        }
        exchange.perform(exchange.flow.answered(answer))
    }

    /// Has a token checked. Where the answer comes later, the request waits for as long as for a
    /// commit at most, unless the proof names a time of its own.
    private func askToken(_ proof: TokenProof) -> Flow.Action {
        guard let tokens = exchange.tokens else {
            preconditionFailure("Exchange: a query about a token that was not read")
        }
        let since = MonotonicClock.nanoseconds
        func answer(_ finding: TokenFinding) -> Flow.Action {
            note(finding, of: proof, since: since)
            return exchange.flow.answered(.token(proof, finding))
        }
        let text: [UInt8]
        switch tokens.showing(proof, exchange.flow.rule) {
        case .nothing: return answer(.missing)
        case .unreadable: return answer(.malformed)
        case .text(let shown): text = shown
        }
        guard exchange.mayVerify(now: since) else { return answer(.throttled) }
        // A gateway without the proof's check knows nothing of its tokens.
        guard settings.options.tokenChecks.indices.contains(proof.index) else {
            return answer(.unavailable)
        }
        let shown = ShownToken(
            text: text,
            proof: proof,
            address: exchange.hasAddress ? exchange.account.address : nil,
            binding: exchange.flow.verdictState.given?.verdict.tokens.binding,
            now: UnixTime(seconds: proxy.wallSeconds)
        )
        let later = answerLater()
        let checking = settings.options.tokenChecks[proof.index].check(shown) {
            later(.token(proof, $0))
        }
        switch checking {
        case .known(let finding): return answer(finding)
        case .later: break
        case .afterCommit: proxy.commits.waitToStore(exchange)
        }
        return .none
    }

    /// A token that was checked in vain counts against the client's address, whatever is wrong with
    /// it: it cost a signature or a call, as a good one does.
    private func note(_ finding: TokenFinding, of proof: TokenProof, since: UInt64) {
        let now = MonotonicClock.nanoseconds
        switch finding {
        case .missing: return
        case .invalid, .expired, .spent, .refused: exchange.addFailure(now: now)
        case .good, .verdict, .malformed, .throttled, .unavailable: break
        }
        exchange.record.add(.party, since: since, until: now)
        proxy.tally.add(.tokenCheck, nanoseconds: now &- since)
    }
}

// Apple's bits of the request's device, and the bits that the origin wants Apple to keep.
extension Querying {
    /// Asks Apple about the device.
    private func askDevice() -> Flow.Action {
        guard let device = exchange.device, let rule = exchange.flow.rule.device,
            let devices = settings.options.devices,
            let verdict = exchange.flow.verdictState.given?.verdict, let keyID = verdict.keyID,
            let environment = verdict.environment
        else { preconditionFailure("Exchange: a query about a device that was not read") }
        let token: DeviceToken
        switch device.showing {
        case .nothing: return exchange.flow.answered(.device(.missing))
        case .malformed: return exchange.flow.answered(.device(.malformed))
        case .token(let shown): token = shown
        }
        // A session costs no verification, so the judge has not asked.
        guard exchange.mayVerify(now: MonotonicClock.nanoseconds) else {
            return exchange.flow.answered(.device(.crowded))
        }
        let mention = DeviceMention(
            token: token,
            keyID: keyID,
            appID: verdict.appID,
            environment: environment,
            address: exchange.hasAddress ? exchange.account.address : nil
        )
        device.asked = mention
        proxy.tally.add(.deviceChecks)
        let answer = answerLater()
        devices.check(mention, timeout: rule.timeout) { answer(.device($0)) }
        return .none
    }

    /// Notes Apple's answer. The client may have gone meanwhile. A call that refuses the request
    /// counts against the client's address.
    private func note(_ finding: DeviceFinding, since: UInt64) {
        let now = MonotonicClock.nanoseconds
        exchange.record.add(.party, since: since, until: now)
        proxy.tally.add(.deviceCheck, nanoseconds: now &- since)
        switch finding {
        case .malformed: exchange.addFailure(now: now)
        case .bits(let bits):
            if exchange.flow.rule.device?.refused.contains(bits) == true {
                exchange.addFailure(now: now)
            }
        case .used, .crowded, .full, .missing, .unavailable: break
        }
        switch finding {
        // The request may not change the bits, or there is no device.
        case .used, .malformed, .crowded, .full: exchange.device?.asked = nil
        case .bits, .missing, .unavailable: break
        }
    }

    /// Makes Apple keep the bits in the origin's response. The request does not wait for it: the
    /// origin has done its work, and a later answer could not undo it.
    func takeDeviceBits(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) {
        guard let devices = settings.options.devices, let mention = exchange.device?.asked,
            let field = head.fields.only(.appAttestDeviceBits),
            let change = DeviceChange(field: bytes.extracting(field.value))
        else {
            exchange.record.deviceUpdate = .ignored
            return proxy.tally.add(.deviceFieldsIgnored)
        }
        guard !change.isEmpty else { return }
        exchange.record.deviceUpdate = .asked
        devices.update(mention, change)
    }
}
