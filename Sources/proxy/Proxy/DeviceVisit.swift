import HTTPWire
import Rules
import Verification

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

    init(_ head: borrowing RequestHead, _ octets: Span<UInt8>) {
        guard head.fields.contains(.appAttestDeviceToken) else {
            showing = .nothing
            return
        }
        guard let field = head.fields.only(.appAttestDeviceToken),
            let token = DeviceToken(octets.extracting(field.value))
        else {
            showing = .malformed
            return
        }
        showing = .token(token)
    }
}
