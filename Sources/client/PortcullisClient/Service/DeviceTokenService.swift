public import Foundation

/// What makes device tokens: the device, or software in its place.
///
/// A device token names the device to Apple's DeviceCheck, which keeps two bits for it, also across
/// reinstalls. A gateway's rule with `device` asks Apple about the token. The call is that of
/// Apple's `DCDevice`, and so is what it may throw. Use `DeviceCheckService` on devices.
/// Simulators, tests and Linux bring a service of their own.
///
/// ``PortcullisSession`` asks for a new token for each request to such a route, and for each try,
/// since a token is good once. It keeps none.
public protocol DeviceTokenService: Sendable {
    /// Whether this device and this process can make tokens.
    var isSupported: Bool { get }

    /// Makes a new token.
    ///
    /// - Returns: the token, opaque to all but Apple; 1 to 6144 bytes.
    func generateToken() async throws(AttestationServiceError) -> Data
}

#if canImport(DeviceCheck)
    import DeviceCheck

    /// The device's own service, Apple's DeviceCheck.
    public struct DeviceCheckService: DeviceTokenService {
        /// The service of this device.
        public init() {}

        /// Whether this device can make tokens. The Simulator can't.
        public var isSupported: Bool { DCDevice.current.isSupported }

        /// Makes a new token.
        public func generateToken() async throws(AttestationServiceError) -> Data {
            do {
                return try await DCDevice.current.generateToken()
            } catch {
                throw AttestationServiceError(translating: error)
            }
        }
    }
#endif
