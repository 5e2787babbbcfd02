import AppleServices
import Rules
import Services

// Calls of origins that ask by themselves. A token is theirs to use as often as they like.
extension DeviceDesk: DeviceCalling {
    func call(_ call: DeviceCall, _ done: @escaping @Sendable (DeviceCallResult) -> Void) {
        let device = NamedDevice(call.token, call.environment, teamID: call.team)
        switch call.task {
        case .query: ask(.query, device) { done(DeviceCallResult($0, to: .query)) }
        case .validate: ask(.validate, device) { done(DeviceCallResult($0, to: .validate)) }
        case .update:
            if let bits = call.change.whole { return write(bits, of: device, done) }
            ask(.query, device) { [self] reply in
                switch DeviceCallResult(reply, to: .query) {
                case .bits(let bits, _): write(call.change.applied(to: bits), of: device, done)
                case let other: done(other)
                }
            }
        }
    }

    private func write(
        _ bits: DeviceBits,
        of device: NamedDevice,
        _ done: @escaping @Sendable (DeviceCallResult) -> Void
    ) {
        ask(.update(bits), device) { done(DeviceCallResult($0, to: .update(bits))) }
    }
}

extension DeviceCallResult {
    fileprivate init(_ reply: DeviceReply, to question: DeviceQuestion) {
        switch (reply, question) {
        case (.bits(let bits, let month), _): self = .bits(bits, month: month)
        case (.neverSet, _): self = .bits(.neverSet, month: nil)
        case (.done, .update(let bits)): self = .bits(bits, month: nil)
        case (.done, _): self = .genuine
        case (.failed(.tokenRefused), _): self = .tokenRefused
        case (.failed(let fault), _): self = .unavailable(fault.word)
        }
    }
}
