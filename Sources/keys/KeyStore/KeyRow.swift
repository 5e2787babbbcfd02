package import DeviceKey
package import Signatures

/// A stored key in the form that a journal gives to the table.
package struct KeyRow: Sendable {
    /// The journal's number of the key.
    package let row: Int64
    package let keyID: KeyID
    package let platform: DevicePlatform
    package let publicKey: P256PublicKey
    package let app: AppNumber
    package let environment: KeyEnvironment
    package let counters: CounterState
    package let standing: KeyStanding
    /// The app's context from the enrolment; `nil` for none.
    package let context: [UInt8]?
    /// The risk of the device: see ``KeyRecord/risk``.
    package let risk: KeyRisk
    /// Whether the counters are known to be the last ones.
    package let anchor: CounterAnchor

    package init(
        row: Int64,
        keyID: KeyID,
        platform: DevicePlatform = .apple,
        publicKey: P256PublicKey,
        app: AppNumber,
        environment: KeyEnvironment,
        counters: CounterState,
        standing: KeyStanding,
        context: [UInt8]? = nil,
        risk: KeyRisk = .unknown,
        anchor: CounterAnchor = .held
    ) {
        self.row = row
        self.keyID = keyID
        self.platform = platform
        self.publicKey = publicKey
        self.app = app
        self.environment = environment
        self.counters = counters
        self.standing = standing
        self.context = context
        self.risk = risk
        self.anchor = anchor
    }
}
