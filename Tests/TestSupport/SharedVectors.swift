package import Signatures

/// The attestations, assertions and receipts that the tests try: those that software made, which
/// the repository keeps, and the genuine ones, where the shared folder is there.
package enum SharedVectors {
    package static let attestations: [AttestationVector] = SharedVectorFiles.load("attestations")
    package static let assertions: [AssertionVector] = SharedVectorFiles.load("assertions")
    package static let receipts: [ReceiptVector] = SharedVectorFiles.load("receipts")

    /// Genuine chains of Android phones. Software makes none yet.
    package static let androidChains: [AndroidVector] = SharedVectorFiles.genuine("android/chains")

    /// The certificate of the authority that made the vectors of the repository.
    package static let softwareRoot: X509Certificate = {
        do {
            return try X509Certificate.certificates(pem: SoftwareVectorFiles.rootPEM)[0]
        } catch {
            fatalError("Tests/Vectors: \(error)")
        }
    }()
}

/// What the vectors of each kind have in common.
package protocol SharedVector: Decodable, Sendable, CustomStringConvertible {
    var id: String { get }
}

extension SharedVector {
    package var description: String { id }

    /// Whether the vector was made by software.
    package var isSoftware: Bool { id.hasPrefix(SoftwareVectorFiles.prefix) }

    /// The root in PEM that must be trusted in place of Apple's; `nil` for a genuine vector.
    package var root: [UInt8]? { isSoftware ? Array(SoftwareVectorFiles.rootPEM.utf8) : nil }
}

package struct AttestationVector: SharedVector {
    package let id: String
    package let appId: String
    package let environment: String
    package let keyId: String
    package let attestationB64: String
    package let clientDataHashB64: String
    package let clientDataHashFormedAs: String
    package let challengeB64: String?
    package let verifyAt: String
    package let leafNotBefore: String
    package let leafNotAfter: String
    package let osVersion: String?
    package let osBuild: String?
    package let platform: String?
    package let aclBlobB64: String?
    package let authDataExtensions: [String: String]?
    package let publicKeyX963B64: String
    package let checked: Checked

    /// What was found when the vector was gathered.
    package struct Checked: Decodable, Sendable {
        package let receipt: Receipt

        package struct Receipt: Decodable, Sendable {
            package let chainToAppleRootCaG3: Bool
        }
    }
}

package struct AssertionVector: SharedVector {
    package let id: String
    package let appId: String
    package let keyId: String
    package let assertionB64: String
    package let clientDataB64: String
    package let clientDataHashB64: String
    package let authenticatorDataExtensions: [String: String]?
    package let publicKeyX963B64: String
    package let counter: UInt32
}

package struct ReceiptVector: SharedVector {
    package let id: String
    package let receiptB64: String
    package let receiptType: String
    package let appId: String
    package let creationTime: String
    package let riskMetric: String?
    package let notBefore: String?
    package let expiration: String
    package let publicKeyX963B64: String
}

/// A chain of Android's key attestation, the leaf first, and what must hold.
package struct AndroidVector: SharedVector {
    package let id: String
    package let challengeB64: String
    package let verifyAt: String
    package let validFrom: String
    package let validUntil: String?
    package let chainB64: [String]
    package let rootIncluded: Bool
    package let mayEnrol: Bool
    /// Why it may not enrol; `nil` when it may.
    package let refusal: String?
    /// Of a message, by the attested key.
    package let signature: Signature?
    package let expected: Expected

    package struct Signature: Decodable, Sendable {
        package let messageB64: String
        package let signatureB64: String
    }

    package struct Expected: Decodable, Sendable {
        package let root: String
        package let packages: [Package]?
        package let signersHex: [String]?
        package let serialsHex: [String?]

        package struct Package: Decodable, Sendable {
            package let name: String
        }
    }
}
