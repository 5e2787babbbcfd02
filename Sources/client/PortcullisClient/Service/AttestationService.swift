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

    /// Signs with an attested key, without a call.
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

/// What an ``AttestationService`` and a ``DeviceTokenService`` may throw: the cases of Apple's
/// `DCError`.
///
/// What the client does about each is Apple's advice ("Establishing your app's integrity").
///
/// Frozen: a new case of Apple's becomes `unknownSystemFailure`.
@frozen
public enum AttestationServiceError: String, Error, Hashable, Sendable, CaseIterable,
    Codable
{
    /// This device or this kind of process can't attest.
    case featureUnsupported = "feature-unsupported"
    /// An argument was refused. Some devices answer every assertion with it.
    case invalidInput = "invalid-input"
    /// The key is unknown to the device, or was attested already, or Apple refuses it.
    case invalidKey = "invalid-key"
    /// Apple's service was not reached or is busy. The same key and the same hash are tried later.
    case serverUnavailable = "server-unavailable"
    /// Anything else.
    case unknownSystemFailure = "unknown-system-failure"
}

extension AttestationServiceError: LocalizedError {
    /// A sentence for a log or a developer.
    public var errorDescription: String? {
        switch self {
        case .featureUnsupported: "This device, or this kind of process, can't attest."
        case .invalidInput: "The device's service refused an argument."
        case .invalidKey: "The key is unknown to the device, attested already, or refused."
        case .serverUnavailable: "Apple's service was not reached, or is busy."
        case .unknownSystemFailure: "The device's service failed, and does not say why."
        }
    }
}

#if canImport(DeviceCheck)
    import DeviceCheck

    /// The device's own service, Apple's App Attest.
    ///
    /// The app needs the App Attest capability.
    public struct AppAttestService: AttestationService {
        /// The service of this device.
        public init() {}

        /// Whether this device and this process can attest.
        public var isSupported: Bool { DCAppAttestService.shared.isSupported }

        /// Makes a key in the Secure Enclave.
        public func generateKey() async throws(AttestationServiceError) -> String {
            do {
                return try await DCAppAttestService.shared.generateKey()
            } catch {
                throw AttestationServiceError(translating: error)
            }
        }

        /// Asks Apple to attest a key.
        public func attestKey(
            _ keyID: String,
            clientDataHash: Data
        ) async throws(AttestationServiceError) -> Data {
            do {
                return try await DCAppAttestService.shared.attestKey(
                    keyID,
                    clientDataHash: clientDataHash
                )
            } catch {
                throw AttestationServiceError(translating: error)
            }
        }

        /// Signs with an attested key.
        public func generateAssertion(
            _ keyID: String,
            clientDataHash: Data
        ) async throws(AttestationServiceError) -> Data {
            do {
                return try await DCAppAttestService.shared.generateAssertion(
                    keyID,
                    clientDataHash: clientDataHash
                )
            } catch {
                throw AttestationServiceError(translating: error)
            }
        }
    }

    extension AttestationServiceError {
        /// What an error of Apple's framework is here.
        init(translating error: any Error) {
            guard let error = error as? DCError else {
                self = .unknownSystemFailure
                return
            }
            switch error.code {
            case .featureUnsupported: self = .featureUnsupported
            case .invalidInput: self = .invalidInput
            case .invalidKey: self = .invalidKey
            case .serverUnavailable: self = .serverUnavailable
            case .unknownSystemFailure: self = .unknownSystemFailure
            @unknown default: self = .unknownSystemFailure
            }
        }
    }
#endif
