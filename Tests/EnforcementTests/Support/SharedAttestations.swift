import AppAttest
import Cryptography
import Foundation
import Octets

/// The genuine attestations that lie beside the package, in `../shared/vectors`; PORTCULLIS_SHARED
/// names another place.
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

    static let all: [Vector] = {
        guard let folder = folder?.appending(path: "attestations") else {
            print("no ../shared/vectors beside the package: genuine objects are not tried")
            return []
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.sorted().filter { $0.hasSuffix(".json") }.map { name in
            do {
                let data = try Data(contentsOf: folder.appending(path: name))
                return try decoder.decode(Vector.self, from: data)
            } catch {
                fatalError("\(name): \(error)")
            }
        }
    }()

    private static let folder: URL? = {
        var shared: URL
        if let path = ProcessInfo.processInfo.environment["PORTCULLIS_SHARED"] {
            shared = URL(filePath: path)
        } else {
            shared = URL(filePath: #filePath).resolvingSymlinksInPath()
            while !FileManager.default.fileExists(
                atPath: shared.appending(path: "Package.swift").path
            ) {
                guard shared.path != "/" else { return nil }
                shared.deleteLastPathComponent()
            }
            shared = shared.deletingLastPathComponent().appending(path: "shared")
        }
        let vectors = shared.appending(path: "vectors")
        return FileManager.default.fileExists(atPath: vectors.path) ? vectors : nil
    }()
}
