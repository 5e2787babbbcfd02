import HTTPWire
import Rules
import Verification

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
