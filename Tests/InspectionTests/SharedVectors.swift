import Foundation
import Octets
import Testing

/// The genuine objects that lie beside the package, in `../shared/vectors`; PORTCULLIS_SHARED names
/// another place.
enum SharedVectors {
    static let attestations: [AttestationVector] = load("attestations")
    static let assertions: [AssertionVector] = load("assertions")
    static let receipts: [ReceiptVector] = load("receipts")

    static var arePresent: Bool {
        if folder == nil {
            print("no ../shared/vectors beside the package: genuine objects are not tried")
        }
        return folder != nil
    }

    static let folder: URL? = {
        let vectors = shared?.appendingPathComponent("vectors")
        guard let vectors, FileManager.default.fileExists(atPath: vectors.path) else { return nil }
        return vectors
    }()

    private static let shared: URL? = {
        if let path = ProcessInfo.processInfo.environment["PORTCULLIS_SHARED"] {
            return URL(fileURLWithPath: path)
        }
        var folder = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        while folder.path != "/" {
            folder.deleteLastPathComponent()
            let manifest = folder.appendingPathComponent("Package.swift").path
            if FileManager.default.fileExists(atPath: manifest) {
                return folder.deletingLastPathComponent().appendingPathComponent("shared")
            }
        }
        return nil
    }()

    private static func load<Vector: Decodable>(_ kind: String) -> [Vector] {
        guard let folder = folder?.appendingPathComponent(kind) else { return [] }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder.path)
                .filter { $0.hasSuffix(".json") }.sorted()
                .map { name in
                    let data = try Data(contentsOf: folder.appendingPathComponent(name))
                    return try decoder.decode(Vector.self, from: data)
                }
        } catch {
            fatalError("\(kind): \(error)")
        }
    }
}

struct AttestationVector: Decodable, Sendable, CustomTestStringConvertible {
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
    let osVersion: String?
    let platform: String?
    let publicKeyX963B64: String
    let checked: Checked

    struct Checked: Decodable {
        let receipt: Receipt

        struct Receipt: Decodable {
            let chainToAppleRootCaG3: Bool
        }
    }

    var testDescription: String { id }
    var octets: [UInt8] { Base64.decode(attestationB64) ?? [] }
}

struct AssertionVector: Decodable, Sendable, CustomTestStringConvertible {
    let id: String
    let appId: String
    let keyId: String
    let assertionB64: String
    let clientDataB64: String
    let clientDataHashB64: String
    let publicKeyX963B64: String
    let counter: UInt32

    var testDescription: String { id }
    var octets: [UInt8] { Base64.decode(assertionB64) ?? [] }
}

struct ReceiptVector: Decodable, Sendable, CustomTestStringConvertible {
    let id: String
    let receiptB64: String
    let receiptType: String
    let appId: String
    let creationTime: String
    let riskMetric: String
    let notBefore: String
    let expiration: String
    let publicKeyX963B64: String

    var testDescription: String { id }
    var octets: [UInt8] { Base64.decode(receiptB64) ?? [] }
}
