#if canImport(DeviceCheck)
    import DeviceCheck
    public import Foundation

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
