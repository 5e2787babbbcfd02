public import DeviceKey

extension VerifiedAttestation: AttestedKey {
    /// Apple's App Attest.
    public static var platform: DevicePlatform { .apple }

    /// The counter of an attestation: 0.
    public var initialCounter: SignCounter? { counter }
}
