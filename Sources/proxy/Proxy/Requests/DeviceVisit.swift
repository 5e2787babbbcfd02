package import AppAttest
import EventLoops
package import HTTPWire
package import KeyStore
package import Rules
import Telemetry
package import Verification

/// What a request shows of its device.
///
/// A reference, so that requests whose rules ask for no device carry nothing.
final class DeviceVisit {
    /// What the field holds.
    enum Showing {
        case nothing
        /// What is no token, or two lines: no specification says which one counts.
        case malformed
        case token(DeviceToken)
    }

    let showing: Showing
    /// The device that Apple was asked about; `nil` when it was not, or the token is not good.
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

// What Apple says of the request's device, and what the origin has Apple keep of it.
extension Exchange {
    /// Asks Apple about the device. Everything else that the rule asks holds.
    func askDevice() -> Flow.Action {
        guard let device, let rule = flow.rule.device, let devices = settings.devices,
            let (ruling, _) = flow.judgement.verdict, let keyID = ruling.keyID,
            let environment = ruling.environment
        else { preconditionFailure("Exchange: a device is asked about that nobody has named") }
        let token: DeviceToken
        switch device.showing {
        case .nothing: return flow.deviceAnswered(.missing)
        case .malformed: return flow.deviceAnswered(.malformed)
        case .token(let shown): token = shown
        }
        let mention = DeviceMention(
            token: token,
            keyID: keyID,
            appID: ruling.appID,
            environment: environment,
            address: hasAddress ? account.address : nil
        )
        device.asked = mention
        proxy.tally.add(.deviceChecks)
        let since = MonotonicClock.nanoseconds
        let loop = loop
        let waiting = LoopBound(self, on: loop)
        devices.check(mention, timeout: rule.timeout) { finding in
            loop.perform { waiting.value.deviceAnswered(finding, since: since) }
        }
        return .none
    }

    /// The client may have gone meanwhile.
    private func deviceAnswered(_ finding: DeviceFinding, since: UInt64) {
        proxy.tally.add(.deviceCheck, nanoseconds: MonotonicClock.nanoseconds &- since)
        switch finding {
        // The bits are not this request's to change, or of no device.
        case .used, .malformed, .crowded, .full: device?.asked = nil
        case .bits, .missing, .unavailable: break
        }
        perform(flow.deviceAnswered(finding))
    }

    /// Has Apple keep what the origin's response says of the device. Nobody waits for it: the
    /// origin has done its work, and no answer that came later could undo it.
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
    /// The key that has signed the request: it stands for the client.
    package let keyID: KeyID
    /// The app whose token it is.
    package let appID: String
    /// Who has attested the key, and so whose servers know the token.
    package let environment: KeyEnvironment
    /// Where the request came from; `nil` where nobody knows.
    package let address: IPAddress?
}

/// Asks Apple about devices, for the event loops.
package protocol DeviceChecking: Sendable {
    /// Finds out about a device. The token is used with it: it is good for no other request.
    ///
    /// `found` is called exactly once, on any thread, within `timeout`.
    func check(
        _ device: DeviceMention,
        timeout: Duration,
        _ found: @escaping @Sendable (DeviceFinding) -> Void
    )

    /// Changes the device's bits, some time. Nobody waits for it.
    func update(_ device: DeviceMention, _ change: DeviceChange)
}
