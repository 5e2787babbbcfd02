public import Foundation

/// What makes keys, has them attested, and signs with them: the device, or software in its place.
///
/// The three calls are those of Apple's `DCAppAttestService`, and so is what they may throw. Use
/// `AppAttestService` on devices. Simulators, tests and Linux bring a service of their own, and
/// the gateway admits its keys only where its configuration trusts their authority.
///
/// ``PortcullisSession`` never attests two keys at a time, and never calls a key's
/// ``generateAssertion(_:clientDataHash:)`` before its attestation.
public protocol AttestationService: Sendable {
    /// Whether this device and this process can attest. Most app extensions can't.
    var isSupported: Bool { get }

    /// Makes a key that never leaves the device.
    ///
    /// - Returns: the key id, base64 of 32 bytes.
    func generateKey() async throws(AttestationServiceError) -> String

    /// Asks Apple to attest a key. A key is attested once.
    ///
    /// - Parameters:
    ///   - keyID: as ``generateKey()`` returned it.
    ///   - clientDataHash: SHA-256 of the client data, 32 bytes.
    /// - Returns: the attestation object.
    /// - Throws: `serverUnavailable` for what may work later with the same key and the same hash.
    func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data

    /// Signs with an attested key. It asks nobody.
    ///
    /// - Parameters:
    ///   - keyID: as ``generateKey()`` returned it.
    ///   - clientDataHash: SHA-256 of the client data, 32 bytes.
    /// - Returns: the assertion object.
    /// - Throws: `invalidKey` for a key that the device lost.
    func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data
}
