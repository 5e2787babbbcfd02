package import Cryptography
package import DeviceKey

/// What the verifier asks of an enrolled key. A value of 88 bytes.
package struct StoredKey: Sendable {
    package let publicKey: P256PublicKey
    package let app: AppNumber
    package let environment: KeyEnvironment
    package let counters: CounterState
    package let isRevoked: Bool

    /// The highest counter admitted so far.
    package var counter: SignCounter { counters.highest }
}
