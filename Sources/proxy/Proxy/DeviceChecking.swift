package import AppAttest
package import HTTPWire
package import KeyStore
package import Rules
package import Verification

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

    package init(
        token: DeviceToken,
        keyID: KeyID,
        appID: String,
        environment: KeyEnvironment,
        address: IPAddress?
    ) {
        self.token = token
        self.keyID = keyID
        self.appID = appID
        self.environment = environment
        self.address = address
    }
}

/// Asks Apple about devices, for the lanes.
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
