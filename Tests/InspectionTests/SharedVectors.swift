import ByteCoding
import Foundation
import TestSupport
import Testing

/// The genuine objects and those that software made, as these tests read them.
enum SharedVectors {
    static let attestations: [AttestationVector] = SharedVectorFiles.load("attestations")
    static let assertions: [AssertionVector] = SharedVectorFiles.load("assertions")
    static let receipts: [ReceiptVector] = SharedVectorFiles.load("receipts")

    /// What `--root` gets for a vector: nothing for genuine ones, for which Apple's are trusted.
    static func root(of id: String) -> [UInt8]? {
        guard id.hasPrefix(SoftwareVectorFiles.prefix) else { return nil }
        return Array(SoftwareVectorFiles.rootPEM.utf8)
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
