package import Cryptography
package import DeviceKey

/// What the verifier asks of an enrolled key. A value of 96 bytes.
package struct StoredKey: Sendable {
    package let publicKey: P256PublicKey
    package let app: AppNumber
    package let environment: KeyEnvironment
    package let counters: CounterState
    package let isRevoked: Bool
    /// What the app has handed in at enrolment; `nil` for nothing.
    package let context: [UInt8]?

    /// The highest counter admitted so far.
    package var counter: SignCounter { counters.highest }
}
