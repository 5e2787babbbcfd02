import Foundation
import PortcullisClient
import Synchronization

/// A device that counts what Apple would count.
final class CountedService: AttestationService {
    struct Counts: Equatable {
        var keys: Int
        var attestations: Int

        init(_ keys: Int, _ attestations: Int) {
            (self.keys, self.attestations) = (keys, attestations)
        }
    }

    private let device: any AttestationService
    private let counted = Mutex(Counts(0, 0))

    init(_ device: any AttestationService) { self.device = device }

    var counts: Counts { counted.withLock { $0 } }

    var isSupported: Bool { device.isSupported }

    func generateKey() async throws(AttestationServiceError) -> String {
        counted.withLock { $0.keys += 1 }
        return try await device.generateKey()
    }

    func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        counted.withLock { $0.attestations += 1 }
        return try await device.attestKey(keyID, clientDataHash: clientDataHash)
    }

    func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        try await device.generateAssertion(keyID, clientDataHash: clientDataHash)
    }
}
