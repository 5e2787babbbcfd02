import OutboundCalls
import Rules
import Services
import Verification

// Calls of origins that query devices themselves. A token that came with a request or a call is
// good for no other request, query or validation. An update accepts it nevertheless: an origin
// changes bits that it has read with this token.
extension DeviceCheckClient: DeviceCalling {
    func call(_ call: DeviceCall, _ done: @escaping @Sendable (DeviceCallResult) -> Void) {
        let beginning = begin(call.token, of: nil)
        switch (beginning, call.task) {
        case (.begun, _), (.used, .update), (.full, .update): break
        case (.used, .query), (.used, .validate): return done(.tokenUsed)
        case (.full, .query), (.full, .validate), (.crowded, _):
            return done(.unavailable("tokens-full"))
        }
        let device = NamedDevice(call.token, call.environment, teamID: call.team ?? onlyTeam)
        perform(call, on: device) { [self] result in
            switch (beginning, result) {
            case (.begun, .bits), (.begun, .genuine): end(call.token, of: nil, isSpent: true)
            case (.begun, _): end(call.token, of: nil, isSpent: false)
            case (.used, _), (.crowded, _), (.full, _): break
            }
            done(result)
        }
    }

    private func perform(
        _ call: DeviceCall,
        on device: NamedDevice,
        _ done: @escaping @Sendable (DeviceCallResult) -> Void
    ) {
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
