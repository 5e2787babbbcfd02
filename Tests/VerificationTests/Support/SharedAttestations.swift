import AppAttest
import ByteCoding
import Cryptography
import Foundation
import TestSupport

/// The genuine attestations, as these tests read them.
enum SharedAttestations {
    struct Vector: Decodable, Sendable, CustomStringConvertible {
        let id: String
        let appId: String
        let environment: String
        let keyId: String
        let attestationB64: String
        let clientDataHashB64: String
        let clientDataHashFormedAs: String
        let challengeB64: String?
        let verifyAt: String
        let leafNotAfter: String
        let publicKeyX963B64: String

        var description: String { id }

        func octets(_ path: KeyPath<Vector, String>) throws -> [UInt8] {
            guard let octets = Base64.decode(self[keyPath: path]) else { throw Trial.Absent() }
            return octets
        }

        func moment(_ path: KeyPath<Vector, String>) throws -> UnixTime {
            guard let time = UnixTime(iso8601: self[keyPath: path]) else { throw Trial.Absent() }
            return time
        }
    }

    private static let loaded: [Vector] = SharedVectorFiles.load("attestations")

    /// The genuine ones; none where the shared folder is absent.
    static let all = loaded.filter { !$0.id.hasPrefix(SoftwareVectorFiles.prefix) }

    /// Those that software made, which the repository keeps.
    static let software = loaded.filter { $0.id.hasPrefix(SoftwareVectorFiles.prefix) }
}
