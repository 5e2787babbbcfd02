package import Cryptography
package import DeviceKey

/// What the verifier asks of an enrolled key. A value of some 100 bytes.
package struct StoredKey: Sendable {
    package let publicKey: P256PublicKey
    package let app: AppNumber
    package let environment: KeyEnvironment
    package let counters: CounterState
    package let isRevoked: Bool
    /// What the app has handed in at enrolment; `nil` for nothing.
    package let context: [UInt8]?
    /// What Apple's last receipt says of the device.
    package let risk: KeyRisk
    /// Whether the counters are known to be the last ones.
    package let anchor: CounterAnchor
    /// Where the journal has it, as ``KeyRow/row``; `nil` where another process was asked.
    package let row: Int64?

    /// The highest counter admitted so far.
    package var counter: SignCounter { counters.highest }
}
