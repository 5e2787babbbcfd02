#if canImport(DeviceCheck)
    import DeviceCheck
    public import Foundation

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
#endif
