import HTTPWire
import KeyStore
import Lanes
import RequestFlow
import Rules
import Telemetry
import Verification

// What Apple says of the request's device, and what the origin has Apple keep of it.
extension Exchange {
    /// Asks Apple about the device. Everything else that the rule asks holds.
    func askDevice() -> RequestFlow.Action {
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
        let lane = lane
        let waiting = LaneBound(self, on: lane)
        devices.check(mention, timeout: rule.timeout) { finding in
            lane.perform { waiting.value.deviceAnswered(finding, since: since) }
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
    func takeDeviceBits(_ head: borrowing ResponseHead, _ octets: Span<UInt8>) {
        guard let devices = settings.devices, let mention = device?.asked,
            let field = head.fields.only(.appAttestDeviceBits),
            let change = DeviceChange(field: octets.extracting(field.value))
        else {
            record.deviceUpdate = .ignored
            return proxy.tally.add(.deviceFieldsIgnored)
        }
        guard !change.isEmpty else { return }
        record.deviceUpdate = .asked
        devices.update(mention, change)
    }
}
