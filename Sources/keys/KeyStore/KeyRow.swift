package import DeviceKey
package import Signatures

/// A stored key as a journal gives it to the table.
package struct KeyRow: Sendable {
    /// The number that the journal knows the key by.
    package let row: Int64
    package let keyID: KeyID
    package let publicKey: P256PublicKey
    package let app: AppNumber
    package let environment: KeyEnvironment
    package let counters: CounterState
    package let standing: KeyStanding
    /// What the app has handed in at enrolment; `nil` for nothing.
    package let context: [UInt8]?
    /// What Apple's last receipt says of the device.
    package let risk: KeyRisk
    /// Whether the counters are known to be the last ones.
    package let anchor: CounterAnchor

    package init(
        row: Int64,
        keyID: KeyID,
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
