public import Foundation

/// What an ``AttestationService`` and a ``DeviceTokenService`` may throw: the cases of Apple's
/// `DCError`.
///
/// What the client does about each is Apple's advice ("Establishing your app's integrity").
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
