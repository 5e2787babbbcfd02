package import AppAttest
package import HTTPWire
package import KeyStore
package import Rules
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
