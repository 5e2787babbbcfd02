package import DeviceKey
package import Signatures

/// The facts of an enrolled key for the verifier. A value of some 100 bytes.
package struct StoredKey: Sendable {
    /// The platform that attested it. It decides how an assertion is read.
    package let platform: DevicePlatform
    package let publicKey: P256PublicKey
    package let app: AppNumber
    package let environment: KeyEnvironment
    package let counters: CounterState
    package let isRevoked: Bool
    /// The app's context from the enrolment; `nil` for none.
    package let context: [UInt8]?
    /// The risk of the device: see ``KeyRecord/risk``.
    package let risk: KeyRisk
    /// Whether the counters are known to be the last ones.
    package let anchor: CounterAnchor
    /// The journal's number, as ``KeyRow/row``; `nil` where another process was asked.
    package let row: Int64?

    /// The highest counter admitted so far.
    package var counter: SignCounter { counters.highest }

    /// The day on which an Android phone's key was enrolled, in days since 1970; `nil` for other
    /// keys, and where the time is not known.
    package var attestedDay: Int64? { platform == .android && risk.day > 0 ? Int64(risk.day) : nil }
}
