package import AppAttest
import EventLoops
package import HTTPWire
package import KeyStore
package import Rules
import Telemetry
package import Verification

/// The device of a request, as its fields show it.
///
/// A reference, so that requests whose rules ask for no device carry nothing.
final class DeviceVisit {
    /// The contents of the field.
    enum Showing {
        case nothing
        /// The text is no token, or there are two lines: no specification says which one counts.
        case malformed
        case token(DeviceToken)
    }

    let showing: Showing
    /// The device that Apple was asked about; `nil` when Apple was not asked, or the token is not
    /// good.
    var asked: DeviceMention?

    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
        guard head.fields.contains(.appAttestDeviceToken) else {
            showing = .nothing
            return
        }
        guard let field = head.fields.only(.appAttestDeviceToken),
            let token = DeviceToken(bytes.extracting(field.value))
        else {
            showing = .malformed
            return
        }
        showing = .token(token)
    }
}

// Queries about a request, which other parties answer at once or later.
extension Exchange {
    /// Asks the party that knows the answer.
    func ask(_ query: RequestQuery) -> Flow.Action {
        switch query {
        case .device: askDevice()
        case .token(let proof): askToken(proof)
        }
    }

    /// Takes an answer on any thread. The client may have gone by then, or the time may be over.
    func answerLater() -> @Sendable (QueryAnswer) -> Void {
        let since = MonotonicClock.nanoseconds
        let loop = loop
        let waiting = LoopBound(self, on: loop)
        return { answer in
            loop.perform { waiting.value.answered(answer, since: since) }
        }
    }

    private func answered(_ answer: QueryAnswer, since: UInt64) {
        switch answer {
        case .device(let finding): note(finding, since: since)
        case .token(let proof, let finding):
            proxy.commits.stored(self)
            note(finding, of: proof, since: since)
        }
        perform(flow.answered(answer))
    }

    /// Has a token checked. Where the answer comes later, the request waits for as long as for a
    /// commit at most, unless the proof names a time of its own.
    private func askToken(_ proof: TokenProof) -> Flow.Action {
        guard let tokens else {
            preconditionFailure("Exchange: a query about a token that was not read")
        }
        let since = MonotonicClock.nanoseconds
        func answer(_ finding: TokenFinding) -> Flow.Action {
            note(finding, of: proof, since: since)
            return flow.answered(.token(proof, finding))
        }
        let text: [UInt8]
        switch tokens.showing(proof, flow.rule) {
        case .nothing: return answer(.missing)
        case .unreadable: return answer(.malformed)
        case .text(let shown): text = shown
        }
        guard mayVerify(now: since) else { return answer(.throttled) }
        // A gateway without the proof's check knows nothing of its tokens.
        guard settings.tokenChecks.indices.contains(proof.index) else {
            return answer(.unavailable)
        }
        let shown = ShownToken(
            text: text,
            proof: proof,
            rule: flow.rule.id,
            host: record.asked.host,
            address: hasAddress ? account.address : nil,
            binding: flow.verdictState.given?.verdict.tokens.binding,
            now: UnixTime(seconds: proxy.wallSeconds)
        )
        let later = answerLater()
        let checking = settings.tokenChecks[proof.index].check(shown) { later(.token(proof, $0)) }
        switch checking {
        case .known(let finding): return answer(finding)
        case .later: break
        case .afterCommit: proxy.commits.waitToStore(self)
        }
        return .none
    }

    /// A token that was checked in vain counts against the client's address, whatever is wrong with
    /// it: it cost a signature or a call, as a good one does.
    private func note(_ finding: TokenFinding, of proof: TokenProof, since: UInt64) {
        let now = MonotonicClock.nanoseconds
        switch finding {
        case .missing: return
        case .invalid, .expired, .spent, .refused: addFailure(now: now)
        case .good, .verdict, .malformed, .throttled, .unavailable: break
        }
        proxy.tally.add(.tokenCheck, nanoseconds: now &- since)
    }
}

// Apple's bits of the request's device, and the bits that the origin wants Apple to keep.
extension Exchange {
    /// Asks Apple about the device.
    func askDevice() -> Flow.Action {
        guard let device, let rule = flow.rule.device, let devices = settings.devices,
            let (verdict, _) = flow.verdictState.given, let keyID = verdict.keyID,
            let environment = verdict.environment
        else { preconditionFailure("Exchange: a query about a device that was not read") }
        let token: DeviceToken
        switch device.showing {
        case .nothing: return flow.answered(.device(.missing))
        case .malformed: return flow.answered(.device(.malformed))
        case .token(let shown): token = shown
        }
        // A session costs no verification, so the judge has not asked.
        guard mayVerify(now: MonotonicClock.nanoseconds) else {
            return flow.answered(.device(.crowded))
        }
        let mention = DeviceMention(
            token: token,
            keyID: keyID,
            appID: verdict.appID,
            environment: environment,
            address: hasAddress ? account.address : nil
        )
        device.asked = mention
        proxy.tally.add(.deviceChecks)
        let answer = answerLater()
        devices.check(mention, timeout: rule.timeout) { answer(.device($0)) }
        return .none
    }

    /// Notes Apple's answer. The client may have gone meanwhile. A call that refuses the request
    /// counts against the client's address.
    func note(_ finding: DeviceFinding, since: UInt64) {
        let now = MonotonicClock.nanoseconds
        proxy.tally.add(.deviceCheck, nanoseconds: now &- since)
        switch finding {
        case .malformed: addFailure(now: now)
        case .bits(let bits):
            if flow.rule.device?.refused.contains(bits) == true { addFailure(now: now) }
        case .used, .crowded, .full, .missing, .unavailable: break
        }
        switch finding {
        // The request may not change the bits, or there is no device.
        case .used, .malformed, .crowded, .full: device?.asked = nil
        case .bits, .missing, .unavailable: break
        }
    }

    /// Makes Apple keep the bits in the origin's response. The request does not wait for it: the
    /// origin has done its work, and a later answer could not undo it.
    func takeDeviceBits(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) {
        guard let devices = settings.devices, let mention = device?.asked,
            let field = head.fields.only(.appAttestDeviceBits),
            let change = DeviceChange(field: bytes.extracting(field.value))
        else {
            record.deviceUpdate = .ignored
            return proxy.tally.add(.deviceFieldsIgnored)
        }
        guard !change.isEmpty else { return }
        record.deviceUpdate = .asked
        devices.update(mention, change)
    }
}

/// A device as a request names it.
package struct DeviceMention: Hashable, Sendable {
    package let token: DeviceToken
    /// The key that has signed the request; it represents the client.
    package let keyID: KeyID
    /// The app to which the token belongs.
    package let appID: String
    /// The authority that has attested the key, and so whose servers know the token.
    package let environment: KeyEnvironment
    /// The client's address; `nil` where it is unknown.
    package let address: IPAddress?
}

/// Asks Apple about devices, for the event loops.
package protocol DeviceChecking: Sendable {
    /// Asks about a device. This uses up the token: it is good for no other request.
    ///
    /// `found` is called exactly once, on any thread, within `timeout`.
    func check(
        _ device: DeviceMention,
        timeout: Duration,
        _ found: @escaping @Sendable (DeviceFinding) -> Void
    )

    /// Changes the device's bits later. No request waits for it.
    func update(_ device: DeviceMention, _ change: DeviceChange)
}
