import Crypto
import Foundation
import PortcullisClient

/// A service whose keys sign nothing: an assertion is the digest of key and hash, which
/// ``FakeGateway`` makes again. It fails as it is told, and counts.
actor FakeService: AttestationService {
    nonisolated let isSupported: Bool
    private(set) var keysMade: [String] = []
    /// Each call, with its key and its hash.
    private(set) var attestations: [(keyID: String, hash: Data)] = []
    /// The same for assertions.
    private(set) var assertions: [(keyID: String, hash: Data)] = []
    private var attested: Set<String> = []
    private var lost: Set<String> = []
    private var attestErrors: [AttestationServiceError] = []
    private var assertErrors: [AttestationServiceError] = []

    init(isSupported: Bool = true) { self.isSupported = isSupported }

    /// The next calls fail.
    func fail(attesting: [AttestationServiceError] = [], asserting: [AttestationServiceError] = [])
    {
        attestErrors += attesting
        assertErrors += asserting
    }

    /// The device loses all its keys.
    func loseKeys() { lost.formUnion(keysMade) }

    func generateKey() async throws(AttestationServiceError) -> String {
        let keyID = Data(SHA256.hash(data: Data("key \(keysMade.count)".utf8)))
            .base64EncodedString()
        keysMade.append(keyID)
        return keyID
    }

    func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        attestations.append((keyID, clientDataHash))
        if !attestErrors.isEmpty { throw attestErrors.removeFirst() }
        guard !lost.contains(keyID), attested.insert(keyID).inserted else { throw .invalidKey }
        return FakeGateway.attestation(keyID, clientDataHash)
    }

    func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        assertions.append((keyID, clientDataHash))
        if !assertErrors.isEmpty { throw assertErrors.removeFirst() }
        guard !lost.contains(keyID), attested.contains(keyID) else { throw .invalidKey }
        return FakeGateway.assertion(keyID, clientDataHash)
    }
}
