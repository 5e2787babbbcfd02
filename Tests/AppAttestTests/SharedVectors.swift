import ByteCoding
import Cryptography
import Foundation
import TestSupport
import Testing

@testable import AppAttest

/// The genuine objects and those that software made, as these tests read them.
enum SharedVectors {
    /// The certificate of the authority that made the vectors of the repository.
    static let softwareRoot: X509Certificate = {
        do {
            return try X509Certificate.certificates(pem: SoftwareVectorFiles.rootPEM)[0]
        } catch {
            fatalError("Tests/Vectors: \(error)")
        }
    }()

    /// Whether a vector was made by software.
    static func isSoftware(_ id: String) -> Bool { id.hasPrefix(SoftwareVectorFiles.prefix) }

    /// The authority of a vector's attestations: Apple's, or the one in the repository.
    static func attestationRoot(of id: String) -> X509Certificate {
        isSoftware(id) ? softwareRoot : AppleRoots.appAttestation
    }

    /// The authority of a vector's receipts: Apple's, or the one in the repository.
    static func receiptRoot(of id: String) -> X509Certificate {
        isSoftware(id) ? softwareRoot : AppleRoots.rootG3
    }

    static let attestations: [AttestationVector] = SharedVectorFiles.load("attestations")
    static let assertions: [AssertionVector] = SharedVectorFiles.load("assertions")
    static let receipts: [ReceiptVector] = SharedVectorFiles.load("receipts")
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
    let leafNotBefore: String
    let leafNotAfter: String
    let osVersion: String?
    let osBuild: String?
    let platform: String?
    let aclBlobB64: String?
    let authDataExtensions: [String: String]?
    let publicKeyX963B64: String
    let checked: Checked

    struct Checked: Decodable {
        let receipt: Receipt

        struct Receipt: Decodable {
            let chainToAppleRootCaG3: Bool
        }
    }

    var testDescription: String { id }
}

struct AssertionVector: Decodable, Sendable, CustomTestStringConvertible {
    let id: String
    let appId: String
    let keyId: String
    let assertionB64: String
    let clientDataB64: String
    let clientDataHashB64: String
    let authenticatorDataExtensions: [String: String]?
    let publicKeyX963B64: String
    let counter: UInt32

    var testDescription: String { id }
}

struct ReceiptVector: Decodable, Sendable, CustomTestStringConvertible {
    let id: String
    let receiptB64: String
    let receiptType: String
    let appId: String
    let creationTime: String
    let riskMetric: String?
    let notBefore: String?
    let expiration: String
    let publicKeyX963B64: String

    var testDescription: String { id }
}

/// What a vector holds that is not there: the vector is broken, and the test stops.
struct BrokenVector: Error {}

func octets(_ base64: String) throws -> [UInt8] {
    guard let octets = Base64.decode(base64) else { throw BrokenVector() }
    return octets
}

func moment(_ text: String) throws -> UnixTime {
    guard let time = UnixTime(iso8601: text) else { throw BrokenVector() }
    return time
}

func keyID(_ base64: String) throws -> KeyID {
    guard let id = KeyID(base64: base64) else { throw BrokenVector() }
    return id
}

func publicKey(_ base64: String) throws -> P256PublicKey {
    guard let key = P256PublicKey(x963: try octets(base64)) else { throw BrokenVector() }
    return key
}

/// The reason an attestation is refused for; `nil` when the body accepts it.
func refusal(_ body: () throws -> Void) -> AttestationRefusal.Reason? {
    do {
        try body()
        return nil
    } catch let refusal as AttestationRefusal {
        return refusal.reason
    } catch {
        fatalError("not an AttestationRefusal: \(error)")
    }
}

func assertionRefusal(_ body: () throws -> Void) -> AssertionRefusal.Reason? {
    do {
        try body()
        return nil
    } catch let refusal as AssertionRefusal {
        return refusal.reason
    } catch {
        fatalError("not an AssertionRefusal: \(error)")
    }
}

func receiptRefusal(_ body: () throws -> Void) -> ReceiptRefusal.Reason? {
    do {
        try body()
        return nil
    } catch let refusal as ReceiptRefusal {
        return refusal.reason
    } catch {
        fatalError("not a ReceiptRefusal: \(error)")
    }
}
