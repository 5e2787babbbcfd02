package import AppAttest
package import HTTPWire
package import KeyStore
package import Rules

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

    package init(
        token: DeviceToken,
        keyID: KeyID,
        appID: String,
        environment: KeyEnvironment,
        address: IPAddress?
    ) {
        (self.token, self.keyID, self.appID) = (token, keyID, appID)
        (self.environment, self.address) = (environment, address)
    }
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
