import Foundation
import Octets

/// The genuine assertions that lie beside the package, in `../shared/vectors`; PORTCULLIS_SHARED
/// names another place.
enum SharedAssertions {
    struct Vector: Decodable, Sendable {
        let id: String
        let appId: String
        let keyId: String
        let publicKeyX963B64: String
        let assertionB64: String
        let clientDataB64: String
        let counter: UInt32

        /// The key as `keys import` takes it, before it made this assertion.
        var importLine: String {
            #"{"key_id":"\#(keyId)","app_id":"\#(appId)","environment":"production","#
                + #""public_key":"\#(publicKeyX963B64)","counter":\#(counter - 1)}"#
        }

        var fields: [(name: String, value: String)] {
            [("App-Attest-Key-Id", keyId), ("App-Attest-Assertion", assertionB64)]
        }

        func clientData() throws -> [UInt8] {
            guard let octets = Base64.decode(clientDataB64) else {
                throw ChildProcess.Failure(description: "\(id): client_data_b64")
            }
            return octets
        }
    }

    static let all: [Vector] = {
        guard let folder = folder?.appending(path: "assertions") else {
            print("no ../shared/vectors beside the package: genuine assertions are not tried")
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
