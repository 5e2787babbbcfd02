/// What a verified attestation of any platform says of the key that it is about.
public protocol AttestedKey: Sendable {
    /// Whose attestation it is.
    static var platform: DevicePlatform { get }

    /// The key.
    var keyID: KeyID { get }

    /// The counter to store: the next one has to be greater. `nil` when the platform's keys count
    /// nothing.
    var initialCounter: SignCounter? { get }
}
